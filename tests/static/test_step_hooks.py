"""What an optimizer calls whenever it steps, and a model whenever it is called: it happens there."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

LOOP = """
from hooks import unseen

def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {before}
    for x, y in loader:
        {first}
        F.cross_entropy(model(x), y).backward(){mark}
        optimizer.step()
"""
SCHEDULE = "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)"
ADVANCING = [
    "optimizer.register_step_post_hook(lambda *given: scheduler.step())",
    "optimizer.register_step_post_hook(hook=lambda opt, args, kwargs: scheduler.step())",
    "def advance(*given): scheduler.step()\n    optimizer.register_step_post_hook(advance)",
    "torch.optim.optimizer.register_optimizer_step_post_hook(lambda *given: scheduler.step())",
    "optimizer.register_step_post_hook(unseen(scheduler))",
]
CLEARING = [
    "optimizer.register_step_post_hook(lambda opt, args, kwargs: opt.zero_grad())",
    "optimizer.register_step_post_hook(lambda *given: model.zero_grad())",
    "def clear(opt, *given): opt.zero_grad()\n    optimizer.register_step_post_hook(clear)",
    "torch.optim.optimizer.register_optimizer_step_post_hook(lambda opt, *given: opt.zero_grad())",
    "model.register_forward_pre_hook(lambda module, given: module.zero_grad())",
    "optimizer.register_step_post_hook(unseen)",
]
NEITHER = "optimizer.register_step_post_hook(lambda *given: print('stepped'))"


@pytest.mark.parametrize("hook", ADVANCING)
def test_a_schedule_is_advanced_by_a_hook(hook: str) -> None:
    source = LOOP.format(before=f"{SCHEDULE}\n    {hook}", first="optimizer.zero_grad()", mark="")
    assert told(TORCH + source) == set()


@pytest.mark.parametrize("hook", CLEARING)
def test_gradients_are_cleared_by_a_hook(hook: str) -> None:
    assert told(TORCH + LOOP.format(before=hook, first="pass", mark="")) == set()


def test_a_hook_that_does_neither_leaves_it_to_the_loop() -> None:
    idle = LOOP.format(before=f"{SCHEDULE}  # GC114\n    {NEITHER}", first="optimizer.zero_grad()", mark="")
    assert told(TORCH + idle) == marked(TORCH + idle)
    uncleared = LOOP.format(before=NEITHER, first="pass", mark="  # GC101")
    assert told(TORCH + uncleared) == marked(TORCH + uncleared)


def test_what_is_advanced_before_the_step_skips_the_first_rate() -> None:
    hook = "optimizer.register_step_pre_hook(lambda *given: scheduler.step())  # GC112"
    source = TORCH + LOOP.format(before=f"{SCHEDULE}\n    {hook}", first="optimizer.zero_grad()", mark="")
    assert told(source) == marked(source)


OF_A_CLASS = """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 10)
        self.optimizer.register_step_post_hook(self.after)

    def after(self, optimizer, args, kwargs):
        self.scheduler.step()
        {clear}

    def fit(self, loader):
        for x, y in loader:
            F.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()
"""


def test_a_method_is_a_hook_too() -> None:
    assert told(TORCH + OF_A_CLASS.format(clear="optimizer.zero_grad()")) == set()
    assert {code for code, _ in told(TORCH + OF_A_CLASS.format(clear="pass"))} == {"GC101"}


SCALED = """
def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler()
    optimizer.register_step_pre_hook(lambda *given: nn.utils.clip_grad_norm_(model.parameters(), 1.0))
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        {unscale}
        scaler.step(optimizer)
        scaler.update()
"""


def test_a_scaler_unscales_before_it_lets_the_optimizer_step() -> None:
    assert told(TORCH + SCALED.format(unscale="scaler.unscale_(optimizer)")) == set()
    assert told(TORCH + SCALED.format(unscale="pass")) == set()

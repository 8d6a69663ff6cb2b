"""Optimizers that hold what others clear, tests of schedules, defaults that nobody needs, loops not entered.

Beside each that is right, the fault that must still be told.
"""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH, told

SHARED = (
    TORCH
    + """
import itertools

class Trainer:
    def __init__(self, generator, critic, loader):
        self.g, self.d, self.loader = generator, critic, loader
        self.g_opt = torch.optim.Adam(self.g.{of_g}parameters())
        self.d_opt = torch.optim.Adam(self.d.parameters())
        self.both = torch.optim.Adam({held})

    def train(self):
        for x, z in self.loader:
            self.d_opt.zero_grad()
            d_loss = F.softplus(self.d(self.g(z).detach())).mean() + F.softplus(-self.d(x)).mean()
            d_loss.backward()
            self.d_opt.step()
            {clear}
            g_loss = F.softplus(-self.d(self.g(z))).mean()
            g_loss.backward()
            self.g_opt.step()
            info = F.mse_loss(self.d(self.g(z)), z)
            info.backward()
            self.both.step()
"""
)


def codes(source: str) -> set[str]:
    return {code for code, _ in told(source)}


ALL = "itertools.chain(self.g.parameters(), self.d.parameters())"


def shared(held: str = ALL, of_g: str = "", clear: str = "self.g_opt.zero_grad()") -> str:
    return SHARED.format(held=held, of_g=of_g, clear=clear)


def test_what_others_clear_is_cleared() -> None:
    assert "GC101" not in codes(shared())
    assert "GC101" not in codes(shared(held="[*self.g.parameters(), *self.d.parameters()]"))


@pytest.mark.parametrize(
    "program",
    [
        shared(clear="pass"),
        shared(of_g="head."),
        shared(held="self.extra.parameters()"),
    ],
    ids=["one of them is not cleared", "a part of it is", "they hold something else"],
)
def test_what_others_do_not_clear_is_told(program: str) -> None:
    assert "GC101" in codes(program)


CLIPS = (
    TORCH
    + """
class Wrapped:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self, model):
        {first}
        {second}

model = nn.Linear(4, 1)
wrapped = Wrapped(torch.optim.SGD(model.parameters(), lr=0.1))
for x in range(10):
    {learn}
    wrapped.step(model)
"""
)
LEARN = "wrapped.optimizer.zero_grad(); model(torch.randn(2, 4)).sum().backward()"
CLIP, STEP = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "self.optimizer.step()"


def test_a_clip_where_nothing_goes_backward_is_none() -> None:
    assert "GC109" not in codes(CLIPS.format(first=CLIP, second=STEP, learn="pass"))
    assert "GC109" not in codes(CLIPS.format(first=CLIP, second=STEP, learn=LEARN))


def test_a_clip_behind_the_step_is_told() -> None:
    assert "GC109" in codes(CLIPS.format(first=STEP, second=CLIP, learn=LEARN))


SETTINGS = (
    TORCH
    + """
def settings(name, loader, **given):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {special}
    {usual}
    return model, optimizer, given

def train(model, optimizer, loader, schedule=None):
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        if schedule is not None:
            {advance}

name = input()
loader = torch.utils.data.DataLoader(torch.load("data.pt"))
model, optimizer, given = settings(name, loader, batch=4)
train(model, optimizer, loader, given["schedule"])
"""
)
DEFAULT = 'given.setdefault("schedule", torch.optim.lr_scheduler.StepLR(optimizer, 5))'
SPECIAL = f'if name == "a": {DEFAULT.replace("StepLR(optimizer, 5)", "ExponentialLR(optimizer, 0.9)")}'


@pytest.mark.parametrize("special", ["pass", SPECIAL], ids=["one", "one of two"])
def test_a_schedule_that_is_a_default_is_advanced_by_who_takes_it(special: str) -> None:
    assert "GC114" not in codes(
        SETTINGS.format(special=special, usual=DEFAULT, advance="schedule.step()")
    )


def test_a_default_that_nobody_advances_is_told() -> None:
    assert "GC114" in codes(SETTINGS.format(special="pass", usual=DEFAULT, advance="pass"))


ONLY_TESTS = (
    TORCH
    + """
def evaluate(model, loader):
    with torch.no_grad():
        return sum(F.mse_loss(model(x), y).item() for x, y in loader)

def main(args, train_loader, test_loader):
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    if {asked}:
        model.eval()
        print(evaluate(model, test_loader))
    for epoch in range(10):
        {leave}
        for x, y in train_loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
"""
)


@pytest.mark.parametrize(
    ("asked", "leave"),
    [
        ("args.only_test", "if args.only_test: break"),
        ("not args.fit", "if not args.fit: break"),
    ],
)
def test_a_loop_that_is_left_at_once_trains_nothing(asked: str, leave: str) -> None:
    assert "GC701" not in codes(ONLY_TESTS.format(asked=asked, leave=leave))


@pytest.mark.parametrize(
    ("asked", "leave"),
    [
        ("args.test_first", "if args.only_test: break"),
        ("args.test_first", "if not args.test_first: break"),
        ("args.test_first", "if epoch > args.most: break"),
    ],
)
def test_a_loop_that_is_left_for_another_reason_trains(asked: str, leave: str) -> None:
    assert "GC701" in codes(ONLY_TESTS.format(asked=asked, leave=leave))


META = (
    TORCH
    + """
class Solver:
    def __init__(self, model, optimizer, meta, train_data, test_data):
        self.model, self.optimizer, self.meta = model, optimizer, meta
        self.train_data, self.test_data = train_data, test_data

    def fit(self):
        for epoch in range(9):
            self.model.train()
            self.run(self.train_data)
            self.model.eval()
            loss = self.run(self.test_data, test=True)
            {after}

    def run(self, loader, test=False):
        total = 0
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y)
            if not test:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            total += loss{of}
        return total
"""
)


def test_who_is_given_the_loss_of_an_evaluation_may_descend_by_it() -> None:
    assert "GC703" not in codes(META.format(after="self.meta.descend(loss, self.optimizer)", of=""))


def test_who_only_keeps_the_optimizer_does_not() -> None:
    kept = META.format(after="self.meta.serialize(self.model, self.optimizer)", of=".item()")
    assert "GC703" in codes(kept)


ACCELERATED = """
from accelerate import Accelerator

accelerator = Accelerator(mixed_precision="bf16")
model, optimizer, loader = accelerator.prepare(model, torch.optim.Adam(model.parameters()), loader)
for x, y in loader:
    with accelerator.autocast():
        loss = F.mse_loss(model(x), y)
    {inside}accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_backward_that_accelerate_runs_belongs_outside_of_its_casts() -> None:
    def found(inside: str) -> set[str]:
        source = TORCH + ACCELERATED.format(inside=inside)
        return {finding.code for finding in judge([observe_source(source, "train.py")])}

    assert "GC509" not in found("")
    assert "GC509" in found("    ")


EACH_TIME = (
    TORCH
    + """
def train(model, x, y, x_test, y_test):
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(100):
        model.train()
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        model.eval()
        {before}
        out = model(x_test)
        print({measured})
"""
)


def noted(before: str, measured: str) -> set[str]:
    source = EACH_TIME.format(before=before, measured=measured)
    return {finding.code for finding in judge([observe_source(source, "train.py")])}


def test_a_forward_after_each_update_may_be_there_for_a_gradient() -> None:
    assert "GC703" in noted("pass", "F.mse_loss(out, y_test).item()")
    assert "GC703" not in noted("x_test.requires_grad_()", "torch.autograd.grad(out.sum(), x_test)")
    assert "GC703" not in noted("x_test.requires_grad = True", "forces(out, x_test)")

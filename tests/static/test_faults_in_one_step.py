"""Faults of a step that is written once and called for every batch, and of loops beside calls that hide none.

Beside each fault stands the nearest program that is right: of that nothing is said.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

A_STEP_THAT_CLIPS_FIRST = """
def make_step(model, optimizer, scaler, limit):
    def step(engine, batch):
        x, y = batch
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(x), y)
        torch.nn.utils.clip_grad_norm_(model.parameters(), limit)  # GC110
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        return loss.item()
    return step
"""

A_METHOD_THAT_MOVES_ITS_SCHEDULE_FIRST = """
class Learner:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 1000)

    def learn(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.schedule.step()  # GC112
        self.optimizer.step()
        return loss.item()
"""

A_METHOD_THAT_STEPS_FIRST = """
class Learner:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 1000)

    def learn(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.item()
"""

A_METHOD_THAT_MOVES_WHAT_IT_WAS_GIVEN_FIRST = """
class Learner:
    def __init__(self, model, schedule):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.schedule = schedule

    def learn(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.schedule.step()
        self.optimizer.step()
"""

A_STEP_THAT_ENDS_THE_ONE_BEFORE = """
class Learner:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.pending = False

    def learn(self, x, y):
        if self.pending:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
        F.mse_loss(self.model(x), y).backward()
        self.pending = True
"""

AN_INHERITED_METHOD_FOR_WHAT_IT_GIVES = """
from synthesis import Synthesizer

class Private(Synthesizer):
    def fit(self, loader):
        critic = nn.Linear(4, 1)
        optimizer = torch.optim.Adam(critic.parameters())
        for x, y in loader:
            fake = self._activated(self.generator(x))
            loss = F.binary_cross_entropy_with_logits(critic(fake.detach()), y)
            loss.backward()  # GC101
            optimizer.step()
"""

AN_INHERITED_METHOD_THAT_MAY_CLEAR = """
from synthesis import Synthesizer

class Private(Synthesizer):
    def fit(self, loader):
        critic = nn.Linear(4, 1)
        optimizer = torch.optim.Adam(critic.parameters())
        for x, y in loader:
            fake = {call}
            loss = F.binary_cross_entropy_with_logits(critic(fake.detach()), y)
            loss.backward()
            optimizer.step()
"""

A_PROFILER_THAT_MAY_BE_MISSING = """
class Profiler:
    def __init__(self, rank, active):
        self.inner = torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=active))

    def step(self):
        self.inner.step()

def run(model, loader, optimizer, trace, rank):
    profiler = Profiler(rank, active=10) if trace else None
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()  # GC101
        optimizer.step()
        if trace:
            profiler.step()
"""

A_HELPER_THAT_MAY_BE_MISSING = """
from tracing import Helper

def run(model, loader, optimizer, trace, rank):
    helper = Helper(rank, active=10) if trace else None
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if trace:
            helper.step()
"""

LOSSES_SHOWN_BY_NAME = """
class Trainer:
    def __init__(self, model, criterion, loader, accum_steps):
        self.model, self.loader, self.accum_steps, self.criterion = model, loader, accum_steps, criterion
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.loss_dict = {}

    def show(self, loss_dict, loss_parts):
        for name, value in loss_parts.items():
            loss_dict[name].update(value)

    def fit(self):
        for index, (x, y) in enumerate(self.loader):
            loss, loss_parts = self.criterion(self.model(x), y)
            self.show(self.loss_dict, loss_parts)
            loss.backward()  # GC106
            if (index + 1) % self.accum_steps == 0 or index == len(self.loader) - 1:
                self.optimizer.step()
                self.optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(A_STEP_THAT_CLIPS_FIRST, id="a step handed to an engine clips before it goes backward"),
        pytest.param(A_METHOD_THAT_MOVES_ITS_SCHEDULE_FIRST, id="a method moves its schedule, then steps"),
        pytest.param(AN_INHERITED_METHOD_FOR_WHAT_IT_GIVES, id="an inherited method is asked for a value"),
        pytest.param(A_PROFILER_THAT_MAY_BE_MISSING, id="a profiler or nothing"),
        pytest.param(LOSSES_SHOWN_BY_NAME, id="losses are shown by name"),
    ],
)
def test_what_a_step_does_wrong_is_seen(source: str) -> None:
    text = dedent(TORCH + source)
    assert told(text) == marked(text)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(A_METHOD_THAT_STEPS_FIRST, id="a method steps, then moves its schedule"),
        pytest.param(A_METHOD_THAT_MOVES_WHAT_IT_WAS_GIVEN_FIRST, id="what moves may set the rate to come"),
        pytest.param(A_STEP_THAT_ENDS_THE_ONE_BEFORE, id="a step ends the one before"),
        pytest.param(
            AN_INHERITED_METHOD_THAT_MAY_CLEAR.format(call="self.before_batch(x)"), id="it may do anything"
        ),
        pytest.param(
            AN_INHERITED_METHOD_THAT_MAY_CLEAR.format(call="self.faked(x, optimizer)"),
            id="it has the optimizer",
        ),
        pytest.param(A_HELPER_THAT_MAY_BE_MISSING, id="what steps may be anything"),
    ],
)
def test_what_may_be_done_elsewhere_is_not_missed(source: str) -> None:
    assert told(dedent(TORCH + source)) == set()


PROGRAM = (
    TORCH
    + """
def train_model(args, loader):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()

def test_model(args, model):
    return model
"""
)


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("import argparse\nparser = argparse.ArgumentParser()\n", {"GC104"}),
        ("import argparse, pytest\nparser = argparse.ArgumentParser()\n", set()),
        ("", set()),
    ],
)
def test_a_program_that_trains_and_tests_is_no_test(more: str, found: set[str]) -> None:
    judged = judge([observe_source(dedent(PROGRAM + more), "src/train_and_test.py")])
    assert {finding.code for finding in judged} == found


CALLED_BACK = (
    TORCH
    + """
class Trainer:
    def __init__(self, model, callbacks):
        self.net = model
        self.callbacks = callbacks
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler()

    def epoch(self, loader):
        for x, y in loader:
            with torch.autocast("cuda", torch.float16):
                loss = F.cross_entropy(self.net(x), y)
            self.scaler.scale(loss).backward()
            self.callbacks.on_backward_end({given})
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
"""
)
SHOWS = "def on_backward_end(context):\n    print(context.loss)\n"
UNSCALES = "def on_backward_end(trainer):\n    trainer.scaler.unscale_(trainer.optimizer)\n"
BY_HAND = "def on_backward_end(trainer):\n    divide(trainer.net, trainer.scaler.get_scale())\n"


@pytest.mark.parametrize(
    ("head", "given", "beside", "found"),
    [
        pytest.param("", "self.context", SHOWS, {"GC501"}, id="nobody takes the scale out"),
        pytest.param("", "self.optimizer", SHOWS, {"GC501"}, id="with the optimizer alone nobody can"),
        pytest.param("", "self.context", UNSCALES, set(), id="a file of the project may unscale"),
        pytest.param("", "self.context", BY_HAND, set(), id="it may be divided out by hand"),
        pytest.param("", "self.scaler", SHOWS, set(), id="who is given the scaler may do it"),
        pytest.param("import fastai\n", "self.context", SHOWS, set(), id="a framework may do it"),
    ],
)
def test_a_call_that_has_no_scaler_leaves_the_scale_in_the_gradients(
    head: str, given: str, beside: str, found: set[str], tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "engine" / "hooks").mkdir(parents=True)
    (tmp_path / "engine" / "hooks" / "callbacks.py").write_text(beside)
    file = tmp_path / "engine" / "trainer.py"
    file.write_text(head + CALLED_BACK.format(given=given))
    judged = judge([observe_source(file.read_text(), str(file))])
    assert {finding.code for finding in judged} == found


def test_where_a_project_ends_must_be_known(tmp_path: Path) -> None:
    file = tmp_path / "trainer.py"
    file.write_text(CALLED_BACK.format(given="self.context"))
    assert judge([observe_source(file.read_text(), str(file))]) == ()

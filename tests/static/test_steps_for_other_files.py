"""A class whose method is one step and clears nothing: whether that is wrong, the files that use it say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint
from tests.static.reading import TORCH, marked, told

LEARNER = TORCH + """
class Learner:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters())

    def update(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()
"""

CLEARING = {
    "the optimizer": """
def run(model, loader):
    learner = Learner(model)
    for x, y in loader:
        learner.optimizer.zero_grad()
        learner.update(x, y)
""",
    "the model": """
def run(model, loader):
    learner = Learner(model)
    for x, y in loader:
        learner.update(x, y)
        model.zero_grad()
""",
    "by hand": """
def run(model, loader):
    learner = Learner(model)
    for x, y in loader:
        learner.update(x, y)
        for parameter in model.parameters():
            parameter.grad = None
""",
    "an heir": """
class Clearing(Learner):
    def update(self, x, y):
        self.prepare()
        return super().update(x, y)
""",
    "a new one for every batch": """
def run(loader):
    for x, y in loader:
        learner = Learner(build())
        learner.update(x, y)
""",
    "a new one for every number": "losses = [Learner(build()).update(x, y) for x, y in loader]",
    "a single call": """
def run(model, x, y):
    Learner(model).update(x, y)
    return model
""",
}

LEAVING = {
    "a loop": """
def run(model, loader):
    learner = Learner(model)
    for x, y in loader:
        print(learner.update(x, y))
""",
    "a loop for each of several": """
def run(models, loader):
    for model in models:
        learner = Learner(model)
        for x, y in loader:
            learner.update(x, y)
""",
    "a function that is handed it": """
def make(model):
    return Learner(model)

def run(learner, loader):
    for x, y in loader:
        learner.update(x, y)
""",
    "nobody": "print('nothing')",
}


@pytest.fixture
def found(tmp_path: Path) -> Callable[[dict[str, str]], set[str]]:
    def lint_all(files: dict[str, str]) -> set[str]:
        (tmp_path / "pyproject.toml").touch()
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        paths = [str(tmp_path / name) for name in files]
        return {finding.code for path in paths for finding in lint([path], Config()).findings}

    return lint_all


Found = Callable[[dict[str, str]], set[str]]


@pytest.mark.parametrize("user", CLEARING)
def test_who_uses_it_may_clear(user: str, found: Found) -> None:
    run = f"{TORCH}from learner import Learner\n{CLEARING[user]}"
    assert found({"learner.py": LEARNER, "run.py": run}) == set()


@pytest.mark.parametrize("user", LEAVING)
def test_who_does_not_leaves_them(user: str, found: Found) -> None:
    run = f"{TORCH}from learner import Learner\n{LEAVING[user]}"
    assert found({"learner.py": LEARNER, "run.py": run}) == {"GC101"}


@pytest.mark.parametrize(("user", "codes"), [("the model", set()), ("a loop", {"GC101"})])
def test_a_package_is_found_where_it_is_kept(user: str, codes: set[str], found: Found) -> None:
    run = f"{TORCH}from agents.learner import Learner\n{(CLEARING | LEAVING)[user]}"
    files = {"src/agents/__init__.py": "", "src/agents/learner.py": LEARNER, "scripts/run.py": run}
    assert found(files) == codes


def test_who_is_handed_it_may_clear_too(found: Found) -> None:
    run = TORCH + """
def run(learner, loader):
    for x, y in loader:
        learner.optimizer.zero_grad()
        learner.update(x, y)
"""
    assert found({"learner.py": LEARNER, "run.py": run}) == set()


def test_what_another_training_clears_is_its_own(found: Found) -> None:
    other = TORCH + """
def fit(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
"""
    assert found({"learner.py": LEARNER, "other.py": other}) == {"GC101"}


A_STEP_IN_ITS_FORWARD = """
class Step(nn.Module):
    def __init__(self, net, optimizer):
        super().__init__()
        self.net, self.optimizer = net, optimizer

    def forward(self, x, y):
        loss = F.mse_loss(self.net(x), y)
        loss.backward()  # GC101
        self.optimizer.step()
        return loss.detach()

def fit(net, loader):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    step = Step(net, optimizer)
    for x, y in loader:
        CLEAR
        step(x, y)
"""


def test_a_module_that_steps_has_the_optimizer_it_was_given() -> None:
    assert told(TORCH + A_STEP_IN_ITS_FORWARD.replace("CLEAR", "optimizer.zero_grad()")) == set()
    fault = TORCH + A_STEP_IN_ITS_FORWARD.replace("CLEAR", "pass")
    assert told(fault) == marked(fault)

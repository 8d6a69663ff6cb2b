"""Functions of another file that run the model they are given, for training and evaluation alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint
from tests.static.reading import TORCH, marked

HELPER = """
def {name}(model, x, y):
    loss = F.cross_entropy(model(x), y)
    decay = sum(0.001 * p.pow(2).sum() for p in model.parameters())
    return loss + decay, 0.5
"""
TRAIN = (
    TORCH
    + """
from helpers import {name}

def train(model, loader, optimizer):
    {train}
    for x, y in loader:
        optimizer.zero_grad()
        loss, _ = {name}(model, x, y){trained}
        loss.sum().backward()
        optimizer.step()

def validate(model, loader):
    {eval}
    total = 0
    for x, y in loader:
        loss, accuracy = {name}(model, x, y){seen}
        total += loss.item()
    return total

model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    train(model, train_loader, optimizer)
    print(validate(model, test_loader))
"""
)


def script(name: str, *, train: bool = True, quiet: bool = False, seen: str = "") -> str:
    text = TRAIN.format(
        name=name,
        train="model.train()" if train else "pass",
        eval="model.eval()" if train else "model.eval()  # GC701",
        trained="",
        seen=f"  # {seen}" if seen else "",
    )
    return text.replace("def validate", "@torch.no_grad()\ndef validate") if quiet else text


def found(text: str, helper: str, folder: Path) -> set[tuple[str, int]]:
    (folder / "helpers.py").write_text(TORCH + helper)
    (folder / "train.py").write_text(text)
    seen = lint([str(folder / "train.py")], Config()).findings
    return {(one.code, one.location.line) for one in seen if one.location}


@pytest.mark.parametrize("name", ["get_loss", "compute_loss", "run_model", "losses_of"])
def test_what_runs_the_model_builds_a_graph(name: str, tmp_path: Path) -> None:
    helper = HELPER.format(name=name)
    text = script(name, seen="GC703")
    assert found(text, helper, tmp_path) == marked(text) != set()
    assert found(script(name, quiet=True), helper, tmp_path) == set()
    assert found(text, helper.replace("model(x)", "model.forward(x)"), tmp_path) == marked(text)


def test_training_by_it_goes_on_in_the_mode_that_was_left(tmp_path: Path) -> None:
    text = script("get_loss", train=False, quiet=True)
    assert found(text, HELPER.format(name="get_loss"), tmp_path) == marked(text) != set()


RIGHT = {
    "it switches gradients off": """
def get_loss(model, x, y):
    with torch.set_grad_enabled(model.training):
        return F.cross_entropy(model(x), y), 0.5
""",
    "a block that is out of sight": """
def get_loss(model, x, y):
    with recording(model):
        return F.cross_entropy(model(x), y), 0.5
""",
    "a decorator": """
@no_graph_in_eval_mode
def get_loss(model, x, y):
    return F.cross_entropy(model(x), y), 0.5
""",
    "it differentiates": """
def get_loss(model, x, y):
    x.requires_grad_()
    scores = model(x)
    slope, = torch.autograd.grad(scores.sum(), x, create_graph=True)
    return F.cross_entropy(scores, y) + slope.norm(), 0.5
""",
    "another one is given the model": """
def get_loss(model, x, y):
    prepare(model)
    return F.cross_entropy(model(x), y), 0.5
""",
    "a method of it may do more": """
def get_loss(model, x, y):
    model.quiet_in_eval_mode()
    return F.cross_entropy(model(x), y), 0.5
""",
    "it does not run it": """
def get_loss(model, x, y):
    return sum(0.001 * p.pow(2).sum() for p in model.parameters()), 0.5
""",
}


@pytest.mark.parametrize("helper", RIGHT.values(), ids=RIGHT)
def test_what_may_do_more_is_left_alone(helper: str, tmp_path: Path) -> None:
    assert found(script("get_loss"), helper, tmp_path) == set()


def test_losses_of_several_tasks_may_be_trained_on_together(tmp_path: Path) -> None:
    text = (
        TORCH
        + """
from helpers import get_loss

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.eval()
for tasks in episodes:
    total = 0
    for x, y in tasks:
        loss, _ = get_loss(model, x, y)
        total = total + loss
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
"""
    )
    assert "GC703" not in {code for code, _ in found(text, HELPER.format(name="get_loss"), tmp_path)}

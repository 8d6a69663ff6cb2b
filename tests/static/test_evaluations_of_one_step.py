"""Evaluations through what trains as well: a helper that both loops call, a class with a step for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.engine import judge
from gradclinic.findings import Severity
from gradclinic.linting.examine import finder
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

A_HELPER_FOR_BOTH = """
def forward(model, i, data):
    items, targets = data.get_slice(i)
    return targets, model(items)

def train_test(model, train_data, test_data):
    model.train()
    slices = train_data.generate_batch(model.batch_size)
    for i, j in zip(slices, range(len(slices))):
        model.optimizer.zero_grad()
        targets, scores = forward(model, i, train_data)
        loss = F.cross_entropy(scores, targets)
        loss.backward()
        model.optimizer.step()
    model.eval()
    hits = []
    slices = test_data.generate_batch(model.batch_size)
    EVALUATION
"""
WITH_GRAPHS = """for i in slices:
        targets, scores = forward(model, i, test_data)  # GC703
        hits.append((scores.argmax(1) == targets).float().mean().item())"""
WITHOUT = """with torch.no_grad():
        for i in slices:
            targets, scores = forward(model, i, test_data)
            hits.append((scores.argmax(1) == targets).float().mean().item())"""
ONE_LOOK = """targets, scores = forward(model, slices[0], test_data)
    hits.append((scores.argmax(1) == targets).float().mean().item())"""
ADAPTED = """for i in slices:
        targets, scores = forward(model, i, test_data)  # GC703
        model.optimizer.zero_grad()
        F.cross_entropy(scores, targets).backward()
        model.optimizer.step()"""


def test_a_helper_that_both_loops_call_builds_graphs_in_the_second() -> None:
    source = TORCH + A_HELPER_FOR_BOTH.replace("EVALUATION", WITH_GRAPHS)
    assert told(source) == marked(source)


@pytest.mark.parametrize("evaluation", [WITHOUT, ONE_LOOK], ids=["without gradients", "one look"])
def test_the_nearest_right_programs_are_left_alone(evaluation: str) -> None:
    assert told(TORCH + A_HELPER_FOR_BOTH.replace("EVALUATION", evaluation)) == set()


def test_what_is_trained_in_eval_mode_is_no_evaluation() -> None:
    found = told(TORCH + A_HELPER_FOR_BOTH.replace("EVALUATION", ADAPTED))
    assert "GC703" not in {code for code, _ in found}


NET = """
import torch
from torch import nn

class graphnet(nn.Module):
    def __init__(self, adjacency, width):
        super().__init__()
        self.adjacency, self.layer = adjacency, nn.Linear(4, width)

    def forward(self, x):
        return self.layer(self.adjacency @ x)
"""
TRAINER = """
import torch.optim as optim
import util

class Trainer:
    def __init__(self, model, rate):
        self.model, self.loss = model, util.masked_mae
        self.optimizer = optim.Adam(self.model.parameters(), lr=rate)

    def train(self, x, y):
        self.model.train()
        self.optimizer.zero_grad()
        loss = self.loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def eval(self, x, y):
        self.model.eval()
        output = self.model(x)
        return self.loss(output, y).item()
"""
SCRIPT = """
import torch
from net import graphnet
from trainer import Trainer

def main(loaders, args):
    adjacency = torch.tensor(args.adjacency)
    model = graphnet(adjacency, args.width)
    engine = Trainer(model, args.rate)
    for epoch in range(args.epochs):
        for x, y in loaders["train"]:
            engine.train(x, y)
        losses = []
        for x, y in loaders["val"]:
            losses.append(engine.eval(x, y))
        print(sum(losses) / len(losses))

if __name__ == "__main__":
    main(load(), parse())
"""


def _found(folder: Path, script: str, trainer: str = TRAINER) -> set[tuple[str, str]]:
    (folder / "net.py").write_text(NET)
    (folder / "trainer.py").write_text(trainer)
    path = str(folder / "main.py")
    (folder / "main.py").write_text(script)
    return {
        (finding.code, Path(finding.location.path).name)
        for finding in judge([observe_source(script, path, finder(path))])
        if finding.location and finding.severity is not Severity.INFO
    }


def test_a_model_that_is_made_of_data_is_a_model(tmp_path: Path) -> None:
    assert _found(tmp_path, SCRIPT) == {("GC703", "trainer.py")}


def test_its_caller_may_switch_gradients_off(tmp_path: Path) -> None:
    one, off = (
        "            losses.append(engine.eval(x, y))",
        "            with torch.no_grad():\n                losses.append(engine.eval(x, y))",
    )
    assert _found(tmp_path, SCRIPT.replace(one, off)) == set()


def test_it_may_do_so_itself(tmp_path: Path) -> None:
    off = TRAINER.replace("    def eval(", "    @torch.no_grad()\n    def eval(")
    assert _found(tmp_path, SCRIPT, off.replace("import util", "import torch\nimport util")) == set()

"""Evaluations that are known by what they take and keep: data by its number, outputs sorted into lists, and a
flag that both the mode and the backward depend on."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

BY_NUMBER = """
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for user in range(users):
        optimizer.zero_grad()
        F.mse_loss(model(rows[user]), targets[user]).backward()
        optimizer.step()

total = 0
for user in range(users):
    {taken}
    total += F.mse_loss(model(rows[user]), y).item(){mark}
print("loss", total / users)
"""
WRONG_BY_NUMBER = ["y = test_set[user]", "y = test_y[user : user + 1]", "y = wrap(val_data[user, 0])"]
NOT_BY_NUMBER = [
    pytest.param("y = targets[user]", id="no data that is held out"),
    pytest.param("y = targets[user]; test_scores[user] = y", id="a place to write to"),
    pytest.param("y = targets[user]; print(test_accuracy[user])", id="a record"),
    pytest.param("y = targets[user] + test_set[0]", id="by another number"),
]


@pytest.mark.parametrize("taken", WRONG_BY_NUMBER)
def test_data_may_be_taken_by_its_number(taken: str) -> None:
    source = TORCH + BY_NUMBER.format(taken=taken, mark="  # GC703")
    assert told(source) == marked(source) != set()
    quiet = source.replace("  # GC703", "").replace("total = 0", "total = 0\ntorch.set_grad_enabled(False)")
    assert told(quiet) == set()


@pytest.mark.parametrize("taken", NOT_BY_NUMBER)
def test_what_is_not_held_out_tells_nothing(taken: str) -> None:
    assert told(TORCH + BY_NUMBER.format(taken=taken, mark="")) == set()


SORTED = """
class Client:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self):
        self.model.train()
        for x, y in self.loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()

    def features(self):
        self.model.eval()
        found = {{}}
        for x, y in self.loader:
            out = self.model(x){mark}
            for i in range(len(y)):
                if y[i].item() in found:
                    found[y[i].item()].{keeps}(out[i, :])
                else:
                    found[y[i].item()] = [out[i, :]]
        return found
"""
FLAGGED = """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def run_epoch(self, data, training):
        self.model.train(training)
        for x, y in data:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(x), y){mark}
            if training:
                loss.backward()
                self.optimizer.step()
            print(loss.item())
"""


def noted(source: str) -> set[tuple[str, int]]:
    """Notes as well: who calls a function that is in sight alone may have switched gradients off."""
    found = judge([observe_source(source, "train.py")])
    return {(finding.code, finding.location.line) for finding in found if finding.location}


def test_outputs_may_be_sorted_into_lists() -> None:
    source = TORCH + SORTED.format(mark="  # GC703", keeps="append")
    assert noted(source) == marked(source)
    right = TORCH + SORTED.format(mark="", keeps="append")
    assert noted(right.replace("    def features", "    @torch.no_grad()\n    def features")) == set()


def test_what_else_they_are_given_to_may_go_backward() -> None:
    assert noted(TORCH + SORTED.format(mark="", keeps="learn")) == set()


def test_a_flag_may_stand_for_the_mode_and_the_backward() -> None:
    source = TORCH + FLAGGED.format(mark="  # GC703")
    assert noted(source) == marked(source)
    assert told(source) == set()


RUNS = """
trainer = Trainer(nn.Linear(4, 2))
for epoch in range(10):
    trainer.run_epoch(train_loader, True)
"""


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        ("    trainer.run_epoch(valid_loader, False)\n", True),
        ("    with torch.no_grad():\n        trainer.run_epoch(valid_loader, False)\n", False),
        ("", False),
    ],
)
def test_who_calls_it_in_sight_says_what_it_is_given(call: str, wrong: bool) -> None:
    source = TORCH + FLAGGED.format(mark="  # GC703" if wrong else "") + RUNS + call
    assert told(source) == marked(source)


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("for x, y in data:", "torch.set_grad_enabled(training)\n        for x, y in data:"),
        ("if training:", "if self.adapts:"),
        ("self.model.train(training)", "self.model.train(self.model.training)"),
    ],
)
def test_a_flag_of_another_kind_tells_nothing(written: str, right: str) -> None:
    source = TORCH + FLAGGED.format(mark="")
    assert written in source
    assert noted(source.replace(written, right)) == set()

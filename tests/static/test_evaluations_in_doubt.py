"""Evaluations whose mode somebody else may have set, or that no layer minds: told only where it is sure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint
from tests.static.reading import marked, told
from tests.static.test_evaluations_in_any_mode import HEAD, PHASES_WITHOUT_GRADIENTS

HELD_OUT_DATA_THAT_TRAINS = """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    optimizer.zero_grad()
    val_loss = 0
    for x, y in val_loader:
        val_loss = val_loss + F.cross_entropy(model(x), y)
    val_loss.backward()
    optimizer.step()
"""

DROPOUT_WANTED = """
def spread_of(model, test_loader):
    model.train()
    with torch.no_grad():
        for x, y in test_loader:
            print(F.cross_entropy(model(x), y))

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
spread_of(model, test_loader)
"""

PLAYED_TO_LEARN_FROM = """
def train(env):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for round in range(10):
        played = []
        with torch.no_grad():
            x = env.reset()
            for step in range(100):
                action = model(x)
                x, reward = env.step(action)
                played.append((x, action, reward))
        for x, action, reward in played:
            optimizer.zero_grad()
            loss = (model(x) - reward).square().mean()
            loss.backward()
            optimizer.step()
"""

FORCES_OUT_OF_SIGHT = """
from potentials import Potential

model = Potential()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for batch in train_loader:
        optimizer.zero_grad()
        F.mse_loss(model(batch)["forces"], batch.forces).backward()
        optimizer.step()
    for batch in test_loader:
        error = F.l1_loss(model(batch)["forces"], batch.forces).item()
"""


@pytest.mark.parametrize(
    "source", [HELD_OUT_DATA_THAT_TRAINS, DROPOUT_WANTED, PLAYED_TO_LEARN_FROM, FORCES_OUT_OF_SIGHT]
)
def test_what_looks_like_an_evaluation_may_be_meant(source: str) -> None:
    assert told(HEAD + source) == set()


def test_an_error_of_no_force_is_measured_without_a_graph() -> None:
    source = FORCES_OUT_OF_SIGHT.replace('["forces"], batch.forces', '["y"], batch.y')
    assert {code for code, _ in told(HEAD + source)} == {"GC703"}


# Of a model that is given only its project can tell what it is made of.
SETTINGS_IN_A_DICTIONARY = """
def train(train_parts):
    for epoch in range(10):
        model, optimizer = train_parts["model"], train_parts["optimizer"]
        for x, y in train_parts["train_loader"]:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        BEFORE
        test({"model": model, "loader": train_parts["test_loader"]})

def test(test_parts):
    correct = 0
    with torch.no_grad():
        for x, y in test_parts["loader"]:
            correct += (test_parts["model"](x).argmax(1) == y).sum().item()  # GC702
"""


A_BASE_OUT_OF_SIGHT = """
from runners import Runner

class MyRunner(Runner):
    def __init__(self, model, callbacks):
        self.model, self.callbacks = model, callbacks
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def fit(self, train_loader, val_loader):
        for epoch in range(10):
            for x, y in train_loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
            self.validate(val_loader)

    def validate(self, val_loader):
        BEFORE
        total_loss = 0
        with torch.no_grad():
            for x, y in val_loader:
                total_loss += F.cross_entropy(self.model(x), y).item()  # GC702
"""


@pytest.fixture
def told_in_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Whether what is marked in a file is told, beside one with a network that has a certain layer."""
    monkeypatch.chdir(tmp_path)

    def told(source: str, before: str = "pass", layer: str = "nn.BatchNorm1d(4)") -> bool:
        text = f"import torch\nimport torch.nn.functional as F\n{source.replace('BEFORE', before)}"
        (tmp_path / "fitting.py").write_text(text)
        network = f"from torch import nn\nnet = nn.Sequential(nn.Linear(4, 4), {layer})\n"
        (tmp_path / "network.py").write_text(network)
        findings = lint(["fitting.py"], Config(), jobs=1).findings
        found = {(finding.code, finding.location.line) for finding in findings if finding.location}
        assert found in (set(), marked(text))
        return bool(found)

    return told


@pytest.mark.parametrize("source", [SETTINGS_IN_A_DICTIONARY, A_BASE_OUT_OF_SIGHT])
def test_a_model_that_is_given_is_one_of_the_project(source: str, told_in_project) -> None:
    assert told_in_project(source)
    assert not told_in_project(source, layer="nn.ReLU()")


@pytest.mark.parametrize(
    "before",
    [
        "self.callbacks.on_validation_begin(self)",
        "self.prepare_validation()",
        "self.set_mode('eval')",
        "self('begin_validate')",
    ],
)
def test_somebody_out_of_sight_may_have_set_the_mode(before: str, told_in_project) -> None:
    assert not told_in_project(A_BASE_OUT_OF_SIGHT, before=before)


def test_a_function_out_of_sight_may_have_set_the_mode(told_in_project) -> None:
    assert not told_in_project(SETTINGS_IN_A_DICTIONARY, before="switch_mode(model)")


NAMED_TWICE = """
class Learner:
    def __init__(self, net):
        self.net = Net()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train(self):
        self.pointer.train()

    def fit(self, train_loader, held_out):
        for epoch in range(10):
            self.train()
            for x, y in train_loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.net(x), y).backward()
                self.optimizer.step()
            self.pointer.eval()
            with torch.no_grad():
                for x, y in held_out:
                    print(F.cross_entropy(self.net(x), y).item())
"""


def test_a_model_may_be_put_into_its_mode_by_another_name() -> None:
    assert told(HEAD + NAMED_TWICE) == set()
    assert told(HEAD + NAMED_TWICE.replace("self.pointer.eval()", "self.net.eval()")) == set()
    forgotten = NAMED_TWICE.replace("self.pointer.eval()", "self.net.eval()").replace(
        "self.train()", "print()"
    )
    assert {code for code, _ in told(HEAD + forgotten)} == {"GC701"}


def test_a_layer_that_is_never_applied_or_perhaps_not_is_not_counted() -> None:
    unused = HEAD.replace("(nn.Linear(4, 4), nn.Dropout(),", "(nn.Linear(4, 4),")
    made = unused.replace("        self.layers", "        self.dropout = nn.Dropout()\n        self.layers")
    applied = made.replace("self.layers(x)", "self.layers(self.dropout(x))")
    assert {code for code, _ in told(applied + PHASES_WITHOUT_GRADIENTS)} == {"GC702"}
    assert told(made + PHASES_WITHOUT_GRADIENTS) == set()
    asked = made.replace(
        "        return self", "        if self.drops:\n            x = self.dropout(x)\n        return self"
    )
    assert told(asked + PHASES_WITHOUT_GRADIENTS) == set()


def test_beside_a_program_there_are_other_programs(told_in_project) -> None:
    program = f'{A_BASE_OUT_OF_SIGHT}\nif __name__ == "__main__":\n    spawn(MyRunner)\n'
    assert not told_in_project(program)


def test_a_network_of_torchvision_inside_has_layers_that_mind_the_mode() -> None:
    inside = HEAD.replace(
        "nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 2))", "torchvision.models.resnet18()"
    )
    assert {code for code, _ in told(inside + PHASES_WITHOUT_GRADIENTS)} == {"GC702"}


MODE_BY_A_NAME = """
def switch(model, training):
    getattr(model, "train" if training else "eval")()

def run(model, optimizer, loader, training):
    switch(model, training)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        if training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss.item())

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    run(model, optimizer, train_loader, True)
    with torch.no_grad():
        run(model, optimizer, val_loader, False)
"""


def test_a_mode_that_is_set_by_a_name_or_by_hand_is_not_known() -> None:
    by_name = 'getattr(model, "train" if training else "eval")()'
    assert told(HEAD + MODE_BY_A_NAME) == set()
    by_hand = "for part in model.modules():\n        part.training = training"
    assert told(HEAD + MODE_BY_A_NAME.replace(by_name, by_hand)) == set()
    forgotten = MODE_BY_A_NAME.replace(by_name, "model.train()")
    assert {code for code, _ in told(HEAD + forgotten)} == {"GC702"}

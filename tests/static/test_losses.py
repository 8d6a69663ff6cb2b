"""What a loss is given, read from source: through modules, attributes, branches and helpers."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH

MODULE = """
class Net(nn.Module):
    def __init__(self, multi):
        super().__init__()
        self.head = nn.Linear(4, 3)
        self.probabilities = nn.Softmax(dim=1)

    def forward(self, x):
        {forward}

def train(loader, net, criterion):
    for x, y in loader:
        loss = criterion(net(x), y)
        loss.backward()

if __name__ == "__main__":
    train(DataLoader(), {net}, nn.CrossEntropyLoss())
"""


def found(source: str) -> dict[str, int]:
    """The codes found and the line of each."""
    findings = judge([observe_source(TORCH + dedent(source), "train.py")])
    return {f.code: f.location.line for f in findings if f.location}


def module(forward: str, net: str = "Net(True)") -> str:
    return MODULE.format(forward=forward, net=net)


@pytest.mark.parametrize(
    "source",
    [
        module("return self.probabilities(self.head(x))"),
        module("return F.softmax(self.head(x), dim=-1).view(len(x), -1)"),
        module("return self.probabilities(self.head(x))", "nn.DataParallel(Net(True)).cuda()"),
        module("return self.head(x)", "nn.Sequential(Net(True), nn.Softmax(1))"),
        module("return self.head(x)", "lambda x: torch.softmax(Net(True)(x), 1)"),
    ],
)
def test_a_softmax_is_followed_from_the_module_to_the_loss(source: str) -> None:
    assert found(source).get("GC401") == 17


@pytest.mark.parametrize(
    "source",
    [
        module("return self.head(x)"),
        module("return self.head(self.probabilities(x))"),
        module("return self.head(x) if self.training else self.probabilities(self.head(x))"),
        module("return self.head(x) * torch.softmax(x, 1)"),
        module(
            "return self.probabilities(self.head(x))", "nn.Sequential(nn.Linear(4, 4), nn.Softmax())[:-1]"
        ),
        module("return self.probabilities(self.head(x))", "build(Net(True))"),
        module("return self.probabilities(self.head(x)).log()"),
        """
        def distil(student, teacher, x):
            F.cross_entropy(student(x), F.softmax(teacher(x), dim=1)).backward()
        """,
        """
        def cross_entropy(p, y):
            return -(y * p.log()).sum()

        def train(model, x, y):
            cross_entropy(model(x).softmax(1), y).backward()
        """,
    ],
)
def test_scores_and_what_cannot_be_followed_are_left_alone(source: str) -> None:
    assert "GC401" not in found(source)


def test_a_sigmoid_behind_an_attribute_reaches_the_loss_that_applies_it_again() -> None:
    source = """
        class Trainer:
            def __init__(self):
                self.net = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
                self.losses = {"bce": nn.BCEWithLogitsLoss()}

            def step(self, x, y):
                score = self.net(x).squeeze(-1)
                self.losses["bce"](score, y).backward()
        """
    assert found(source) == {"GC402": 13}


def test_a_head_put_on_a_model_of_torchvision_is_what_it_ends_in() -> None:
    source = """
        from torchvision import models
        model = models.resnet18()
        model.fc = nn.Sequential(nn.Linear(512, 10), nn.Softmax(dim=1))
        model = model.to(device)
        for x, y in loader:
            F.cross_entropy(model(x), y).backward()
        """
    assert found(source) == {"GC401": 11}


def test_every_layer_of_a_long_list_is_run() -> None:
    source = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(4, 4), nn.ReLU()] * 3 + [nn.Linear(4, 3)])
                self.more = nn.ModuleList([nn.Linear(4, 4) for _ in range(9)])
                for _ in range(4):
                    self.layers.append(nn.Linear(3, 3))
                self.layers.append(nn.LogSoftmax(dim=1))

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x

        net = Net()
        for x, y in loader:
            F.nll_loss(net(x), y).backward()
        """
    assert found(source) == {}


def test_the_layer_before_the_sigmoid_gives_raw_scores() -> None:
    source = """
        gate = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
        def step(x, y):
            F.binary_cross_entropy_with_logits(gate[0](x), y).backward()
        """
    assert found(source) == {}


def test_a_model_of_the_same_project_is_followed(tmp_path: Path) -> None:
    package = tmp_path / "models"
    package.mkdir()
    (package / "__init__.py").write_text("from .heads import Head\n")
    (package / "heads.py").write_text(
        "from torch import nn\n\n\nclass Head(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.score = nn.Linear(4, 3)\n\n    def forward(self, x):\n"
        "        return nn.functional.softmax(self.score(x), dim=1)\n"
    )
    script = tmp_path / "scripts" / "train.py"
    source = (
        "import torch\nfrom torch import nn\nfrom models import Head\n\nhead = Head()\n"
        "loss = nn.NLLLoss()(head(torch.randn(8, 4)), torch.zeros(8).long())\nloss.backward()\n"
    )
    (finding,) = judge([observe_source(source, str(script))])
    assert (finding.code, finding.location and finding.location.line) == ("GC404", 6)

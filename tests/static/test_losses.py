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
        module("return (lambda y, last=nn.Softmax(1): last(y))(self.head(x))"),
        module("return self.head(x)", "lambda x: torch.softmax(Net(True)(x), 1)"),
        module("return torch.exp(F.log_softmax(self.head(x), dim=1))"),
        module("return nn.parallel.data_parallel(self.probabilities, self.head(x), range(2))"),
        module("return self.probabilities(self.head(x)) if x.sum() > 0 else F.log_softmax(self.head(x), 1)"),
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
        module("return torch.exp(self.head(x))"),
        module("return (lambda y, last=nn.Softmax(1): last(y))(self.head(x), last=nn.Identity())"),
        module("return nn.parallel.data_parallel(self.head, self.probabilities(x), range(2))"),
        module("return self.head(x) if x.sum() > 0 else F.log_softmax(self.head(x), 1)"),
        """
        def train(model, loader):
            criterion = getattr(nn, "CrossEntropyLoss")()
            for x, y in loader:
                criterion(model(x), y).backward()
        """,
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


def test_a_loss_taken_by_its_name_is_one() -> None:
    source = """
    def train(model, loader):
        criterion = getattr(nn, "CrossEntropyLoss")()
        for x, y in loader:
            criterion(model(x).softmax(1), y).backward()
    """
    assert found(source) == {"GC401": 9}


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


STEPS = """
class Steps(nn.Module):
    def training_step(self, batch):
        x, y = batch
        return self.loss(self(x), y)
"""
HEAD = """
class Head(Steps):
    def __init__(self):
        super().__init__()
        self.score, self.last = nn.Linear(4, 1), nn.{last}()
        self.loss = nn.BCEWithLogitsLoss()

    def forward(self, x):
        return self.last(self.score(x))
"""


def test_a_step_is_taken_by_the_class_that_inherits_it() -> None:
    assert found(STEPS + HEAD.format(last="Sigmoid")) == {"GC402": 9}
    assert found(STEPS + HEAD.format(last="Identity")) == {}


def test_a_step_of_another_file_is_told_where_the_class_chose_its_loss(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(TORCH + STEPS)
    for last, codes in (("Sigmoid", {"GC402": 11}), ("Identity", {})):
        source = TORCH + "from steps import Steps\n" + HEAD.format(last=last)
        findings = judge([observe_source(source, str(tmp_path / "head.py"))])
        assert {f.code: f.location.line for f in findings if f.location} == codes


NEIGHBOUR = """
from torch import nn

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 3)
        self.last = nn.{last}(dim=1)

    def forward(self, x):
        return self.last(self.score(x))

    def add_loss(self, loss):
        self.loss = loss

    def epoch(self, loader):
        for x, y in loader:
            self.loss(self.__call__(x), y).backward()
"""
SCRIPT = """
import torch
from head import *

head = Head()
criterion = nn.NLLLoss()
head.add_loss(criterion)
head.epoch(torch.utils.data.DataLoader(data))
"""


@pytest.mark.parametrize(("last", "codes"), [("Softmax", {"GC404": 6}), ("LogSoftmax", {})])
def test_a_loss_used_in_another_file_is_told_where_it_is_chosen(
    last: str, codes: dict[str, int], tmp_path: Path
) -> None:
    (tmp_path / "head.py").write_text(NEIGHBOUR.format(last=last))
    findings = judge([observe_source(SCRIPT, str(tmp_path / "train.py"))])
    assert {f.code: f.location.line for f in findings if f.location} == codes


@pytest.mark.parametrize(("last", "codes"), [("Softmax", {"GC401"}), ("Identity", set())])
def test_the_loop_that_a_loss_is_handed_to_is_looked_at(last: str, codes: set[str], tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(
        "def train(model, criterion, loader):\n    for x, y in loader:\n"
        "        criterion(model(x), y).backward()\n"
    )
    source = (
        "from torch import nn\nfrom loops import train\n\n"
        f"model = nn.Sequential(nn.Linear(4, 3), nn.{last}(1))\n"
        "train(model, nn.CrossEntropyLoss(), loader)\n"
    )
    assert {f.code for f in judge([observe_source(source, str(tmp_path / "main.py"))])} == codes


DECODED = """
class Decoded(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(4, 4), nn.Linear(4, 9)

    def forward(self, x):
        rows = torch.zeros(len(x), 8, 9).to(x.device)
        hidden = torch.zeros(8, 4)
        for t in range(1, len(x)):
            hidden = self.cell(x[t], hidden)
            rows[t] = {row}
        return rows

def step(model, x, y):
    nn.CrossEntropyLoss()(model(x)[1:].view(-1, 9), y).backward()

step(Decoded(), x, y)
"""


@pytest.mark.parametrize(
    ("row", "codes"),
    [
        ("F.softmax(self.out(hidden), dim=1)", {"GC401": 20}),
        ("self.out(hidden)", {}),
        ("self.out(hidden) * F.softmax(self.out(hidden), dim=1)", {}),
    ],
)
def test_what_is_written_row_by_row_is_what_the_loss_is_given(row: str, codes: dict[str, int]) -> None:
    assert found(DECODED.format(row=row)) == codes


CHOSEN = """
from torchvision.models import resnet18

class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 3)

    def forward(self, x):
        return F.softmax(self.score(x), dim=1)

class Plain(Small):
    def forward(self, x):
        return self.score(x)

def main(args):
    criterion = nn.CrossEntropyLoss()
    if args.model == "small":
        model = Small()
        {along}
    elif args.model == "other":
        model = {other}
    else:
        raise ValueError(args.model)
    model = model.to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        output = model(x)
        {between}
        loss = criterion(output, y)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("other", ["resnet18()", "Plain()", "make_model(args)"])
def test_a_loss_that_all_models_share_must_suit_each_of_them(other: str) -> None:
    assert found(CHOSEN.format(other=other, along="pass", between="pass")) == {"GC401": 35}


@pytest.mark.parametrize("other", ["resnet18()", "Plain()"])
def test_what_is_chosen_with_the_model_may_well_suit_it(other: str) -> None:
    along = CHOSEN.format(other=other, along="criterion = nn.MSELoss()", between="pass")
    assert found(along) == {}
    between = "if args.model == 'small': output = torch.log(output + 1e-6)"
    assert found(CHOSEN.format(other=other, along="pass", between=between)) == {}
    apart = "if args.model == 'small': F.mse_loss(output, y).backward(); continue"
    assert found(CHOSEN.format(other=other, along="pass", between=apart)) == {}


@pytest.mark.parametrize(
    ("last", "codes"),
    [("self.score(x)", {"GC404": 6}), ("log_probabilities(self.score(x))", {}), ("self.score(x), x", {})],
)
def test_scores_of_another_file_are_raw_where_nothing_there_says_otherwise(
    last: str, codes: dict[str, int], tmp_path: Path
) -> None:
    (tmp_path / "rows.py").write_text(
        "from torch import nn\nfrom somewhere import log_probabilities\n\nclass Head(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.score = nn.Linear(4, 3)\n\n"
        f"    def forward(self, x):\n        return {last}\n"
    )
    source = (
        "import torch\nfrom torch import nn\nfrom rows import Head\n\nhead, x = Head(), torch.randn(8, 4)\n"
        "loss = nn.functional.nll_loss(head(x), torch.zeros(8).long())\nloss.backward()\n"
    )
    findings = judge([observe_source(source, str(tmp_path / "train.py"))])
    assert {f.code: f.location.line for f in findings if f.location} == codes


@pytest.mark.parametrize(
    ("hook", "codes"), [("torch.log_softmax(out, -1)", {}), ("kept.append(out)", {"GC404": 14})]
)
def test_a_hook_may_replace_what_a_model_gives(hook: str, codes: dict[str, int]) -> None:
    source = f"""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(3, 3)
        def forward(self, x):
            return self.body(x)
    net, kept = Net(), []
    net.register_forward_hook(lambda module, given, out: {hook})
    loss = nn.NLLLoss()(net(x), y)
    """
    assert found(source) == codes

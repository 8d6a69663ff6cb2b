"""A file of models read by itself: what they end in is judged by the losses that other files give it to."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint

NET = """\
import torch
from torch import nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.head(F.relu(self.body(x)))
        {end}
"""
SOFTMAX, SIGMOID = "return F.softmax(x, dim=1)", "return torch.sigmoid(x)"
TRAIN = """\
import torch
from torch import nn
import torch.nn.functional as F
from models.net import Net

model = Net()
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    {loss}
    loss.backward()
    optimizer.step()
"""
FOCAL = """\
import torch.nn.functional as F
from torch import nn

class Focal(nn.Module):
    def forward(self, inputs, targets):
        each = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
        return (each * (1 - (-each).exp()) ** 2).mean()
"""
ENGINE = """\
from torch import nn

def fit(model, loader):
    criterion = nn.CrossEntropyLoss()
    for x, y in loader:
        criterion(model(x), y).backward()
"""
CROSS_ENTROPY = "loss = F.cross_entropy(model(x), y)"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(*paths: str) -> set[tuple[str, str, int]]:
    diagnosis = lint(paths, Config())
    assert not diagnosis.problems
    return {(f.code, f.location.path, f.location.line) for f in diagnosis.findings if f.location}


def write(project: Path, end: str, **scripts: str) -> None:
    (project / "models" / "net.py").write_text(NET.format(end=end))
    for name, text in scripts.items():
        (project / f"{name}.py").write_text(text)


@pytest.mark.parametrize(
    ("end", "loss", "code"),
    [
        (SOFTMAX, CROSS_ENTROPY, "GC401"),
        (SOFTMAX, "loss = nn.NLLLoss()(model(x), y)", "GC404"),
        (SIGMOID, "loss = F.binary_cross_entropy_with_logits(model(x), y)", "GC402"),
        ("return F.log_softmax(x, dim=0)", "loss = F.nll_loss(model(x), y)", "GC410"),
        ("return x, torch.sigmoid(x)", "loss = nn.BCEWithLogitsLoss()(model(x)[1], y)", "GC402"),
        ("return {'scores': F.softmax(x, 1)}", "loss = F.cross_entropy(model(x)['scores'], y)", "GC401"),
    ],
)
def test_the_end_of_a_model_is_judged_by_the_loss_of_its_script(
    project: Path, end: str, loss: str, code: str
) -> None:
    write(project, end, train=TRAIN.format(loss=loss))
    assert found("models/net.py") == {(code, "models/net.py", 13)}


def test_the_loss_is_named_with_its_place(project: Path) -> None:
    write(project, SOFTMAX, train=TRAIN.format(loss=CROSS_ENTROPY))
    (finding,) = lint(["models/net.py"], Config()).findings
    assert finding.message == "cross_entropy at train.py:10 is given probabilities: softmax is applied twice"


def test_a_loss_of_the_project_may_stand_between(project: Path) -> None:
    script = TRAIN.format(loss="loss = criterion(model(x).squeeze(), y.float())")
    script = script.replace("model =", "from focal import Focal\ncriterion = Focal()\nmodel =")
    write(project, SIGMOID, train=script, focal=FOCAL)
    assert found("models/net.py") == {("GC402", "models/net.py", 13)}
    assert found("models/net.py", "focal.py") == {("GC402", "focal.py", 6)}


def test_a_script_may_hand_the_model_to_the_file_that_has_the_loss(project: Path) -> None:
    main = "from engine import fit\nfrom models.net import Net\n\ntrain = fit(Net(), loader)\n"
    write(project, SOFTMAX, main=main, engine=ENGINE)
    assert found("models/net.py") == {("GC401", "models/net.py", 13)}
    assert found("models/net.py", "engine.py") == {("GC401", "engine.py", 6)}


@pytest.mark.parametrize("paths", [["."], ["models/net.py", "train.py"]])
def test_of_files_that_are_read_together_the_script_tells(project: Path, paths: list[str]) -> None:
    write(project, SOFTMAX, train=TRAIN.format(loss=CROSS_ENTROPY))
    assert found(*paths) == {("GC401", "train.py", 10)}


@pytest.mark.parametrize(
    ("end", "loss"),
    [
        ("return x if self.training else F.softmax(x, dim=1)", CROSS_ENTROPY),
        ("if not self.training:\n            x = F.softmax(x, dim=1)\n        return x", CROSS_ENTROPY),
        ("x = F.softmax(x, dim=1)\n        return self.head(x @ self.body.weight)", CROSS_ENTROPY),
        ("return x, F.softmax(x, dim=1)", "loss = F.cross_entropy(model(x)[0], y)"),
        ("return x, F.softmax(x, dim=1)", "scores, _ = model(x)\n    loss = F.cross_entropy(scores, y)"),
        (SOFTMAX, "loss = F.nll_loss(model(x).log(), y)"),
        (SOFTMAX, "loss = F.mse_loss(model(x), y)"),
        ("return F.log_softmax(x, dim=1)", "loss = F.nll_loss(model(x), y)"),
        ("return F.softmax(x, dim=1) * torch.sigmoid(x)", CROSS_ENTROPY),
        (SOFTMAX, "model(x).argmax(1)\n    loss = F.cross_entropy(other(x), y)"),
    ],
)
def test_an_end_that_suits_the_loss_is_not_told(project: Path, end: str, loss: str) -> None:
    write(project, end, train=TRAIN.format(loss=loss))
    assert found("models/net.py") == set()


def test_an_end_that_suits_one_of_two_scripts_is_not_told(project: Path) -> None:
    other = TRAIN.format(loss="loss = F.mse_loss(model(x), y)")
    write(project, SOFTMAX, train=TRAIN.format(loss=CROSS_ENTROPY), distil=other)
    assert found("models/net.py") == set()
    assert found("train.py") == {("GC401", "train.py", 10)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test_net", TRAIN.format(loss=CROSS_ENTROPY)),  # a test may try anything
        ("train", TRAIN.format(loss=CROSS_ENTROPY).replace("models.net", "models.other")),
        ("show", "import torch\nfrom models.net import Net\n\nprint(Net()(x).argmax(1), 'trained')\n"),
        (
            "score",
            TRAIN.partition("optim")[0] + "with torch.no_grad():\n    print(F.cross_entropy(model(x), y))\n",
        ),
    ],
)
def test_who_does_not_train_the_model_has_no_say(project: Path, name: str, text: str) -> None:
    write(project, SOFTMAX, **{name: text})
    assert found("models/net.py") == set()


PART = NET.replace("class Net", "class Head").format(end=SOFTMAX)
WHOLE = """\
from torch import nn
from models.net import Head

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), Head()

    def forward(self, x):
        return {output}
"""
HEIR = """\
from torch import nn
from models.net import Head

class Net(Head):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 5)
"""


@pytest.mark.parametrize(
    ("whole", "told"),
    [
        (WHOLE.format(output="self.head(self.body(x))"), True),
        (WHOLE.format(output="self.body(x)"), False),
        (HEIR, True),
        (HEIR + "\n    def forward(self, x):\n        return self.body(x)\n", False),
    ],
)
def test_a_model_may_end_in_a_part_or_a_base_of_another_file(project: Path, whole: str, told: bool) -> None:
    (project / "models" / "net.py").write_text(PART)
    (project / "models" / "whole.py").write_text(whole)
    (project / "train.py").write_text(TRAIN.replace("models.net", "models.whole").format(loss=CROSS_ENTROPY))
    assert found("train.py") == ({("GC401", "train.py", 10)} if told else set())
    assert found("models/net.py") == ({("GC401", "models/net.py", 13)} if told else set())


@pytest.mark.parametrize(("end", "told"), [(SOFTMAX, True), ("return x", False)])
def test_a_library_that_stands_in_the_project_brings_model_and_loss_together(
    project: Path, end: str, told: bool
) -> None:
    (project / "swift_skorch.py").write_text(
        "class SwiftNeuralNet:\n    def __init__(self, module, criterion):\n        # cross_entropy, say\n"
        "        self.module, self.criterion = module, criterion\n"
    )
    rest = "from swift_skorch import SwiftNeuralNet\nSwiftNeuralNet(Net, criterion=nn.CrossEntropyLoss)\n"
    (project / "train.py").write_text(NET.format(end=end) + rest)
    assert found("train.py") == ({("GC401", "train.py", 15)} if told else set())


def test_places_in_other_files_are_named_with_their_file(project: Path) -> None:
    (project / "models" / "net.py").write_text(NET.format(end=SOFTMAX))
    (project / "train.py").write_text(TRAIN.format(loss=CROSS_ENTROPY))
    for read, softmax, loss in (
        ("train.py", "softmax at models/net.py:13", "cross_entropy:10"),
        ("models/net.py", "softmax:13", "cross_entropy at train.py:10"),
    ):
        (finding,) = lint([read], Config()).findings
        seen = {str(evidence.label): str(evidence.value) for evidence in finding.evidence}
        assert seen["input of the loss"].endswith(f"{softmax} -> {loss}")
        assert finding.fix is not None
        assert ("models/net.py:13" in finding.fix.text) is (read == "train.py")

"""Losses and models that meet in a library, in a signature, in a method, or behind a head that was put on."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return {output}
"""
SOFTMAX, RAW = "F.softmax(self.head(x), dim=1)", "self.head(x)"
IGNITE = "from ignite.engine import create_supervised_trainer as create\n"
SKORCH = "from skorch import NeuralNetClassifier\n"
LIBRARIES = [
    IGNITE + "trainer = create(Net(), torch.optim.SGD(weights, 0.1), F.cross_entropy)",
    IGNITE + "create(Net().cuda(), torch.optim.SGD(weights, 0.1), loss_fn=nn.CrossEntropyLoss())",
    SKORCH + "net = NeuralNetClassifier(Net, criterion=nn.CrossEntropyLoss)",
    "import skorch\nnet = skorch.NeuralNet(Net(), nn.CrossEntropyLoss, max_epochs=2)",
    "from fastai.basic_train import Learner\nlearn = Learner(data, Net(), loss_func=nn.CrossEntropyLoss())",
]


@pytest.mark.parametrize("handed", LIBRARIES)
def test_a_library_gives_the_model_to_the_loss(handed: str) -> None:
    source = TORCH + NET.format(output=SOFTMAX) + handed + "  # GC401"
    assert told(source) == marked(source) != set()
    assert told(TORCH + NET.format(output=RAW) + handed) == set()


@pytest.mark.parametrize(
    "handed",
    [
        # skorch takes the logarithm of what the module gives, where the loss is this one.
        SKORCH + "net = NeuralNetClassifier(Net, criterion=nn.NLLLoss)",
        SKORCH + "net = NeuralNetClassifier(Net)",
        IGNITE + "create(Net(), None, F.cross_entropy, model_transform=torch.log)",
        "from somewhere import create_trainer\ncreate_trainer(Net(), None, F.cross_entropy)",
    ],
)
def test_what_a_library_does_in_between_is_minded(handed: str) -> None:
    assert told(TORCH + NET.format(output=SOFTMAX) + handed) == set()


USUAL_LOSS = """
class PerSample(nn.Module):
    def __init__(self, loss={loss}):
        super().__init__()
        self.loss = loss

    def forward(self, scores, target):
        rows = {rows}
        total = 0
        for row in rows:
            total = total + self.loss(row, target){mark}
        return total / len(rows)
"""


@pytest.mark.parametrize("loss", ["nn.CrossEntropyLoss()", "F.cross_entropy"])
def test_the_loss_that_a_signature_has_is_the_usual_one(loss: str) -> None:
    faulty = TORCH + USUAL_LOSS.format(loss=loss, rows="torch.softmax(scores, -1)", mark="  # GC401")
    assert told(faulty) == marked(faulty) != set()
    assert told(TORCH + USUAL_LOSS.format(loss=loss, rows="scores / 2", mark="")) == set()
    assert told(TORCH + USUAL_LOSS.format(loss="None", rows="torch.softmax(scores, -1)", mark="")) == set()


ADVERSARY = """
class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.real, self.kind = nn.Sequential(nn.Linear(4, 1){sigmoid}), nn.Linear(4, 3)

    def forward(self, x):
        return self.real(x), self.kind(x)

class Game(LightningModule):
    def __init__(self):
        super().__init__()
        self.judge = Judge()

    def adversarial_loss(self, guess, truth):
        return F.binary_cross_entropy_with_logits(guess, truth){mark}

    def training_step(self, batch, index):
        x, y = batch
        real, kind = self.judge(x)
        return self.adversarial_loss(real, torch.ones(8, 1)) + F.mse_loss(kind, y)
"""


def test_a_method_of_the_class_says_what_its_loss_is_given() -> None:
    top = TORCH + "from pytorch_lightning import LightningModule\n"
    faulty = top + ADVERSARY.format(sigmoid=", nn.Sigmoid()", mark="  # GC402")
    assert told(faulty) == marked(faulty) != set()
    assert told(top + ADVERSARY.format(sigmoid="", mark="")) == set()


HEADED = """
from torchvision import models

def run(args, loader):
    model = {made}
    {placed} = nn.Sequential(nn.Linear(512, 3){softmax})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward(){mark}
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "placed"),
    [
        ("models.__dict__[args.arch](weights=None)", "model.fc"),
        ("getattr(models, args.arch)()", "model.fc"),
        ("models.vgg16(pretrained=True)", "model.classifier[6]"),
        ("models.mobilenet_v2()", "model.classifier[-1]"),
    ],
)
def test_a_head_put_on_a_model_of_torchvision(made: str, placed: str) -> None:
    softmax = ", nn.Softmax(dim=1)"
    faulty = TORCH + HEADED.format(made=made, placed=placed, softmax=softmax, mark="  # GC401")
    assert told(faulty) == marked(faulty) != set()
    assert told(TORCH + HEADED.format(made=made, placed=placed, softmax="", mark="")) == set()


def test_a_layer_in_the_middle_is_no_head() -> None:
    inner = HEADED.format(
        made="models.vgg16()", placed="model.classifier[3]", softmax=", nn.Softmax(dim=1)", mark=""
    )
    assert told(TORCH + inner) == set()


NAMED = """
{defined}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        features = self.body(x)
        scores = self.head(features)
        return Output(scores, features, odds=scores.softmax(1))

def run(loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        output = model(x)
        F.cross_entropy(output.{field}, y).backward(){mark}
        optimizer.step()
"""


@pytest.mark.parametrize(
    "defined",
    [
        'from collections import namedtuple\nOutput = namedtuple("Output", ["scores", "features", "odds"])',
        'from collections import namedtuple\nOutput = namedtuple("Output", "scores features, odds")',
        "from typing import NamedTuple\nclass Output(NamedTuple):\n scores: int\n features: int\n odds: int",
    ],
)
def test_the_fields_of_a_named_tuple_are_told_apart(defined: str) -> None:
    faulty = TORCH + NAMED.format(defined=defined, field="odds", mark="  # GC401")
    assert told(faulty) == marked(faulty) != set()
    assert told(TORCH + NAMED.format(defined=defined, field="scores", mark="")) == set()


ROWS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv1d(3, 64, 1), nn.Linear(64, 5)

    def forward(self, x):
        x = self.body(x).max(2, keepdim=True)[0]
        x = x.view(-1, 64)
        return F.log_softmax(self.head(x), dim={dim}){mark}

def run(loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.nll_loss(model(x.transpose(2, 1)), y).backward()
        optimizer.step()
"""


def test_rows_of_a_view_are_samples() -> None:
    faulty = TORCH + ROWS.format(dim=0, mark="  # GC410")
    assert told(faulty) == marked(faulty) != set()
    assert told(TORCH + ROWS.format(dim=1, mark="")) == set()
    whole = ROWS.format(dim=0, mark="").replace("x.view(-1, 64)", "x.view(64)")
    assert told(TORCH + whole) == set()

"""Faults behind a method, a context manager or a second name of the project's own."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

AGENT = """
class Agent:
    def __init__(self, model, device):
        self.net = {net}
        self.target = {target}{mark}
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def learn(self, x, y):
        with torch.no_grad():
            wanted = y + self.target(x)
        loss = F.mse_loss(self.net(x), wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def update_target(self):
        self.target.load_state_dict(self.net.state_dict())
        {then}
"""


def test_moving_a_model_makes_no_second_one() -> None:
    faulty = TORCH + AGENT.format(
        net="model.to(device)", target="model.to(device)", mark="  # GC713", then="return self"
    )
    assert told(faulty) == marked(faulty) != set()


def test_an_update_that_puts_the_model_in_the_place_of_its_target() -> None:
    then = "self.target = self.net  # GC713"
    faulty = TORCH + AGENT.format(net="make()", target="make()", mark="", then=then)
    assert told(faulty) == marked(faulty) != set()


@pytest.mark.parametrize(
    ("net", "target", "then"),
    [
        ("model.to(device)", "copy.deepcopy(model).to(device)", "pass"),
        ("model().to(device)", "model().to(device)", "pass"),
        ("model.first.to(device)", "model.second.to(device)", "pass"),
        ("model.to(device)", "model.to(device)\n        self.target = copy.deepcopy(self.net)", "pass"),
        ("make()", "make()", "self.target = copy.deepcopy(self.net)"),
        ("make()", "make()", "self.last = self.net"),
    ],
)
def test_two_models_are_two(net: str, target: str, then: str) -> None:
    source = AGENT.format(net=net, target=target, mark="", then=then)
    assert told(TORCH + "import copy\n" + source) == set()


def noted(source: str, code: str) -> set[tuple[str, int]]:
    """What lint says of this code, in notes as well."""
    found = judge([observe_source(source, "train.py")])
    return {(code, one.location.line) for one in found if one.code == code and one.location}


RATE = """
class Updates({base}):
    def schedule_by(self, make):
        self.scheduler = torch.optim.lr_scheduler.StepLR(self, 3)

    def get_lr(self):
        return {given}{mark}
"""


def test_a_method_that_asks_the_schedule_for_the_rate_of_now() -> None:
    faulty = TORCH + RATE.format(base="torch.optim.SGD", given="self.scheduler.get_lr()[0]", mark="  # GC308")
    assert noted(faulty, "GC308") == marked(faulty) != set()


@pytest.mark.parametrize("given", ["self.scheduler.get_lr()", "[r / 2 for r in self.scheduler.get_lr()]"])
def test_a_schedule_that_asks_another_one(given: str) -> None:
    source = RATE.format(base="torch.optim.lr_scheduler.LRScheduler", given=given, mark="")
    assert noted(TORCH + source, "GC308") == set()


CAST = """
from helpers import OurAutocast

class MaybeAutocast:
    def __enter__(self):
        self.inner = torch.autocast("cuda")
        self.inner.__enter__()

    def __exit__(self, *raised):
        self.inner.__exit__(*raised)

class Timer:
    def __enter__(self):
        pass

    def __exit__(self, *raised):
        pass

def train(model, loader, use_amp):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        with {context}:
            loss = F.mse_loss(model(x), y)
            loss.backward(){mark}
        optimizer.step()
"""


@pytest.mark.parametrize(
    "context",
    ["OurAutocast()", "MaybeAutocast()", "torch.autocast('cuda') if use_amp else contextlib.nullcontext()"],
)
def test_a_backward_under_an_autocast_of_the_project(context: str) -> None:
    faulty = TORCH + CAST.format(context=context, mark="  # GC509")
    assert noted(faulty, "GC509") == marked(faulty) != set()


@pytest.mark.parametrize("context", ["Timer()", "OurAutocast(enabled=False)", "disable_autocast()"])
def test_a_backward_under_something_else(context: str) -> None:
    assert noted(TORCH + CAST.format(context=context, mark=""), "GC509") == set()


ONE_STEP = """
class Learner:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def learn(self, x, y):
        self.optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.mse_loss(self.model(x), y)
{indent}loss.backward(){mark}
        self.optimizer.step()
"""


def test_one_step_is_enough_to_see_a_backward_under_autocast() -> None:
    faulty = TORCH + ONE_STEP.format(indent=12 * " ", mark="  # GC509")
    assert noted(faulty, "GC509") == marked(faulty) != set()
    assert noted(TORCH + ONE_STEP.format(indent=8 * " ", mark=""), "GC509") == set()


CONVERTED = """
def train(args, loader):
    model = args.build()
    if args.convert:
        model = {convert}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = model(x, labels=y)[0]{scaled}
        loss.backward(){mark}
        if (i + 1) % args.accumulate == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    "convert",
    [
        "torch.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)",
        "nn.SyncBatchNorm.convert_sync_batchnorm(model)",
        "nn.DataParallel(model)",
    ],
)
def test_a_model_whose_layers_are_converted_is_the_same_one(convert: str) -> None:
    source = TORCH + CONVERTED.format(convert=convert, scaled="", mark="  # GC106")
    assert told(source) == marked(source)
    assert told(TORCH + CONVERTED.format(convert=convert, scaled=" / args.accumulate", mark="")) == set()

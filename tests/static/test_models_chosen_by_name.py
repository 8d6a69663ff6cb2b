"""Losses of models chosen by name, or that give a tensor or a tuple: what holds for all of them is told."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradclinic.engine import judge
from gradclinic.linting.modules import finder
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

TWO = """
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return {small}

class Large(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 64), nn.Linear(64, 3)

    def forward(self, x):
        return {large}
"""
SOFTMAX = {"small": "F.softmax(self.head(x), 1)", "large": "F.softmax(self.head(self.body(x)), 1)"}
RAW = {"small": "self.head(x)", "large": "self.head(self.body(x))"}

BY_A_DICT_OF_CLASSES = """
MODELS = {"small": Small, "large": Large}

def run(args, loader):
    model = MODELS[args.model]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()  # GC401
        optimizer.step()
"""

BY_BRANCHES_THAT_NAME_A_CLASS = """
def run(args, loader):
    if args.small:
        Model = Small
    else:
        Model = Large
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model.forward(x), y).backward()  # GC401
        optimizer.step()
"""

BY_A_FUNCTION_OF_A_DICT = """
def small():
    return Small()

def large():
    return Large()

def run(args, loader):
    model = {"small": small, "large": large}[args.model]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()  # GC401
        optimizer.step()
"""

CHOSEN = {name: text for name, text in list(globals().items()) if name.startswith("BY_")}

GIVES_MORE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x, more=None):
        h = self.body(x)
        if more:
            return {tuple}
        return {tensor}

def run(loader, more):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        {taken} = net(x, more)
        optimizer.zero_grad()
        F.cross_entropy(scores, y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize("way", CHOSEN)
def test_a_softmax_that_all_of_them_end_in_is_told(way: str) -> None:
    source = TORCH + TWO.format(**SOFTMAX) + dedent(CHOSEN[way])
    assert told(source) == marked(source)


@pytest.mark.parametrize("way", CHOSEN)
def test_nothing_is_told_of_models_that_give_raw_scores(way: str) -> None:
    assert told(TORCH + TWO.format(**RAW) + dedent(CHOSEN[way])) == set()


def test_nothing_is_told_where_the_loss_is_chosen_with_the_model() -> None:
    source = dedent("""
        MODELS = {"small": Small, "large": Large}

        def run(args, loader):
            model = MODELS[args.model]()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x, y in loader:
                optimizer.zero_grad()
                if args.model == "small":
                    loss = F.cross_entropy(model(x), y)
                else:
                    loss = F.nll_loss(torch.log(model(x)), y)
                loss.backward()
                optimizer.step()
        """)
    assert told(TORCH + TWO.format(small=RAW["small"], large=SOFTMAX["large"]) + source) == set()


def test_which_activation_a_setting_names_is_for_the_setting_to_say() -> None:
    source = dedent("""
        LAST = {"softmax": nn.Softmax, "none": nn.Identity}

        def run(args, loader):
            model = nn.Sequential(nn.Linear(4, 3), LAST[args.last]())
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
        """)
    assert told(TORCH + source) == set()


@pytest.mark.parametrize(
    ("tensor", "pair", "taken", "codes"),
    [
        ("F.softmax(self.head(h), 1)", "self.head(h), h", "scores", {"GC401"}),
        ("self.head(h)", "F.softmax(self.head(h), 1), h", "scores, h", {"GC401"}),
        ("self.head(h)", "F.softmax(self.head(h), 1), h", "scores", set()),
        ("F.softmax(self.head(h), 1)", "self.head(h), h", "scores, h", set()),
        ("self.head(h), h, h", "F.softmax(self.head(h), 1), h", "scores, h", {"GC401"}),
        ("self.head(h), h, h", "F.softmax(self.head(h), 1), h", "scores, h, h", set()),
    ],
)
def test_who_takes_it_apart_knows_what_was_given(tensor: str, pair: str, taken: str, codes: set[str]) -> None:
    source = GIVES_MORE.format_map({"tensor": tensor, "tuple": pair, "taken": taken})
    assert {code for code, _ in told(TORCH + source)} == codes


BATCHES = """
def one_batch(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.CrossEntropyLoss()(model(x), y)
    loss.backward()
    optimizer.step()
"""

MAIN = """
import torch
from batches import one_batch
from nets import Small

model = Small()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    one_batch(model, optimizer, x, y)
"""


@pytest.mark.parametrize(("ends", "codes"), [(SOFTMAX, {"GC401"}), (RAW, set())])
def test_a_model_is_followed_to_whoever_steps_its_optimizer(
    ends: dict[str, str], codes: set[str], tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text(TORCH + TWO.format(**ends))
    (tmp_path / "batches.py").write_text(TORCH + BATCHES)
    main = tmp_path / "main.py"
    main.write_text(MAIN)
    observation = observe_source(MAIN, str(main), finder(str(main)))
    assert {finding.code for finding in judge([observation])} == codes


@pytest.mark.parametrize(("ends", "codes"), [(SOFTMAX, {"GC401"}), (RAW, set())])
def test_one_name_may_be_imported_from_two_modules(
    ends: dict[str, str], codes: set[str], tmp_path: Path
) -> None:
    for name in ("digits", "faces"):
        (tmp_path / f"{name}.py").write_text(TORCH + TWO.format(**ends))
    source = TORCH + dedent("""
        def run(args, loader):
            if args.data == "digits":
                from digits import Small
            else:
                from faces import Small
            model = Small()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
        """)
    findings = judge([observe_source(source, str(tmp_path / "train.py"))])
    assert {finding.code for finding in findings} == codes

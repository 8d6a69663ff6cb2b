"""Models whose last layer is taken off or replaced after they were built, here or in another file."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint
from tests.static.reading import TORCH, marked, told

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Sequential(nn.Linear(8, 3), nn.{END})
        self.act = nn.{END}

    def forward(self, x):
        return self.{GIVES}
"""
ENDS_IN_A_CHAIN, ENDS_IN_A_LAYER = "head(self.body(x))", "act(self.body(x))"

TRAIN = """
def train(loader):
    net = Net()
    {change}
    criterion = nn.{LOSS}()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(net(x), y).backward(){mark}
        optimizer.step()
"""

OF_A_CHAIN = [
    "net.head[-1] = nn.Identity()",
    "net.head[1] = nn.Identity()",
    "net.head = net.head[:-1]",
    "net.head = nn.Linear(8, 3)",
    "net.head = nn.Sequential(*list(net.head.children())[:-1])",
    "del net.head[-1]",
    "net.head.pop(-1)",
    "net.head._modules['1'] = nn.Identity()",
    "net.head._modules.pop('1')",
    "net.set_submodule('head.1', nn.Identity())",
    "net.get_submodule('head')[-1] = nn.Identity()",
    "net = nn.Sequential(net.body, *net.head[:1])",
    """for part in net.modules():
        if isinstance(part, nn.Sequential):
            part[-1] = nn.Identity()""",
    "take_off_the_end(net)",
]

OF_A_LAYER = [
    "net.act = nn.Identity()",
    "net.act = lambda x: x",
    "setattr(net, 'act', nn.Identity())",
    "net._modules['act'] = nn.Identity()",
    "net.forward = lambda x: net.body(x)",
    "net.act.register_forward_hook(lambda module, given, out: given[0])",
    "net = nn.Sequential(*list(net.children())[:-1])",
    """for name, part in net.named_children():
        if isinstance(part, (nn.Softmax, nn.Sigmoid)):
            setattr(net, name, nn.Identity())""",
    "net.apply(without_ends)",
]

HELPERS = """
def take_off_the_end(net):
    net.head[-1] = nn.Identity()

def without_ends(part):
    if hasattr(part, "act"):
        part.act = nn.Identity()
"""

LEAVE_IT = [
    "net.body = nn.Linear(8, 8)",
    "net.head[0] = nn.Linear(8, 3)",
    "net.apply(init_weights)",
    "net.act.register_forward_hook(lambda module, given, out: print(out))",
    """for part in net.modules():
        part.inplace = False""",
    """if isinstance(net.act, nn.ReLU):
        net.act = nn.Identity()
        net.head = nn.Identity()""",
]

CHANGES = [
    *((ENDS_IN_A_CHAIN, change) for change in OF_A_CHAIN),
    *((ENDS_IN_A_LAYER, change) for change in OF_A_LAYER),
]
WRONG = [("Softmax(dim=1)", "CrossEntropyLoss", "GC401"), ("Sigmoid()", "BCEWithLogitsLoss", "GC402")]


def net(end: str, gives: str) -> str:
    return NET.format(END=end, GIVES=gives)


@pytest.mark.parametrize(("end", "loss", "code"), WRONG)
@pytest.mark.parametrize(("gives", "change"), CHANGES)
def test_what_was_taken_off_is_not_there(gives: str, change: str, end: str, loss: str, code: str) -> None:
    training = TRAIN.format(change=change, LOSS=loss, mark="")
    assert told(TORCH + HELPERS + net(end, gives) + training) == set()


@pytest.mark.parametrize(("end", "loss", "code"), WRONG)
@pytest.mark.parametrize("gives", [ENDS_IN_A_CHAIN, ENDS_IN_A_LAYER])
@pytest.mark.parametrize("change", LEAVE_IT)
def test_what_was_left_on_is(gives: str, change: str, end: str, loss: str, code: str) -> None:
    source = TORCH + net(end, gives) + TRAIN.format(change=change, LOSS=loss, mark=f"  # {code}")
    assert told(source) == marked(source)


def test_what_was_put_there_is_judged() -> None:
    raw = TORCH + net("ReLU()", ENDS_IN_A_CHAIN)
    right = TRAIN.format(change="net.head[-1] = nn.LogSoftmax(dim=1)", LOSS="NLLLoss", mark="")
    wrong = TRAIN.format(change="net.head[-1] = nn.Tanh()", LOSS="NLLLoss", mark="  # GC404")
    assert told(raw + right) == set()
    assert told(raw + wrong) == marked(raw + wrong)


@pytest.fixture
def found(tmp_path: Path):
    """What is told of a model's own file, read alone, and of the script that trains it."""
    (tmp_path / "pyproject.toml").touch()
    nets, script = tmp_path / "nets.py", tmp_path / "train.py"

    def lint_both(gives: str, change: str) -> set[str]:
        nets.write_text(TORCH + net("Softmax(dim=1)", gives))
        training = TRAIN.format(change=change, LOSS="CrossEntropyLoss", mark="")
        script.write_text(f"{TORCH}from nets import Net\n{HELPERS}{training}")
        return {f.code for file in (nets, script) for f in lint([str(file)], Config()).findings}

    return lint_both


@pytest.mark.parametrize(("gives", "change"), CHANGES)
def test_the_file_of_the_model_is_told_by_who_trains_it(found, gives: str, change: str) -> None:
    assert found(gives, change) == set()
    assert found(gives, "pass") == {"GC401"}

"""Losses that are kept with their graph, whoever makes and keeps them; and numbers kept rightly."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradclinic.config import Config
from gradclinic.engine import judge
from gradclinic.linting import lint
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

METER = """
class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum = self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
"""
LOOP = """
def train(model, loader, optimizer, crit):
    {begin}
    for i, (x, y) in enumerate(loader):
        loss = crit(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {keep}
"""


def loop(begin: str, keep: str, before: str = "") -> str:
    return TORCH + before + LOOP.format(begin=begin, keep=keep)


FAULTY = {
    "times the size of the batch": loop("total = 0", "total += loss * x.size(0)  # GC212"),
    "on another device": loop("history = []", "history.append(loss.cpu())  # GC212"),
    "in a dictionary": loop('stats = {"loss": 0.0}', 'stats["loss"] += loss  # GC212'),
    "in one of many lists": loop(
        "log = defaultdict(list)",
        'log["loss"].append(loss)  # GC212',
        "from collections import defaultdict\n",
    ),
    "by a meter": loop("losses = AverageMeter()", "losses.update(loss, x.size(0))  # GC212", METER),
    "by a function": loop(
        "history = []",
        "note(history, loss)  # GC212",
        "def note(history, loss):\n    history.append(loss)\n",
    ),
    "of the object's own making": TORCH
    + dedent("""
        class Trainer:
            def run(self):
                self.losses = []
                for batch in self.loader:
                    loss = self.objective(batch)
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                    self.losses.append(loss)  # GC212
        """),
    "with the terms it is made of": TORCH
    + dedent("""
        from project import terms_of

        def train(model, loader, optimizer):
            epoch = []
            for x in loader:
                optimizer.zero_grad()
                losses = terms_of(model, x)
                losses["loss"] = losses["a"] + 0.1 * losses["b"]
                losses["loss"].backward()
                optimizer.step()
                epoch.append(losses)  # GC212
            return epoch
        """),
}


@pytest.mark.parametrize("program", FAULTY.values(), ids=FAULTY)
def test_the_loss_is_kept(program: str) -> None:
    assert told(program) == marked(program)


def test_a_cell_with_a_return_astray_is_passed_over() -> None:
    program = "return 1\n" + TORCH + "model, loader, optimizer = ready()\nlosses = []\n"
    program += dedent("""
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss)  # GC212
        """)
    assert told(program) == marked(program)


RIGHT = {
    "a number": loop("losses = AverageMeter()", "losses.update(loss.item(), x.size(0))", METER),
    "a meter that takes the number": loop(
        "losses = AverageMeter()",
        "losses.update(loss, x.size(0))",
        METER.replace(
            "n=1):\n",
            "n=1):\n        if isinstance(value, torch.Tensor):\n            value = value.item()\n",
        ),
    ),
    "a meter that lets go": loop(
        "losses = AverageMeter()",
        "losses.update(loss, x.size(0))",
        METER.replace(
            "n=1):\n", "n=1):\n        if torch.is_tensor(value):\n            value = value.detach()\n"
        ),
    ),
    "a meter that starts over": loop(
        "losses = AverageMeter()",
        "losses.update(loss)\n        if i % 10 == 0:\n            losses.reset()",
        METER,
    ),
    "lists that are emptied": loop(
        "log = defaultdict(list)",
        'log["loss"].append(loss)\n        if i % 10 == 0:\n            log.clear()',
        "from collections import defaultdict\n",
    ),
    "lists that are made anew": loop(
        "log = defaultdict(list)",
        'log["loss"].append(loss)\n        if i % 10 == 0:\n            log = defaultdict(list)',
        "from collections import defaultdict\n",
    ),
    "lists of one update": loop(
        "pass",
        'log = defaultdict(list)\n        log["loss"].append(loss)',
        "from collections import defaultdict\n",
    ),
    "what another process has": loop(
        "total = 0",
        "reduced_loss = reduce_over_ranks(loss)\n        total += reduced_loss * x.size(0)",
        "from project import reduce_over_ranks\n",
    ),
    "an accuracy": loop(
        "total = 0",
        "acc = accuracy(loss, y)\n        total += acc * x.size(0)",
        "from project import accuracy\n",
    ),
    "a number, on one branch": loop(
        "total = 0", "if i:\n            loss = loss.item()\n        total += loss * x.size(0)"
    ),
    "terms that are let go": FAULTY["with the terms it is made of"].replace(
        "append(losses)  # GC212", "append({k: v.detach() for k, v in losses.items()})"
    ),
}


@pytest.mark.parametrize("program", RIGHT.values(), ids=RIGHT)
def test_no_graph_is_kept(program: str) -> None:
    assert told(program) == set()


def test_a_meter_of_another_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "utils.py").write_text(METER)
    script = loop(
        "losses = AverageMeter()", "losses.update(loss, 4)  # GC212", "from utils import AverageMeter\n"
    )
    (tmp_path / "train.py").write_text(script)
    monkeypatch.chdir(tmp_path)
    found = lint(["train.py"], Config()).findings
    assert {(one.code, one.location.line) for one in found if one.location} == marked(script)


OUTPUTS = """
def train(model, teacher, loader, optimizer):
    kept = []
    for x, y in loader:
        out = model(x)
        goal = teacher(x)
        loss = F.cross_entropy(out, y) SOFTLY
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(KEPT)
    return torch.cat(kept)
"""


def noted(softly: str, kept: str) -> set[str]:
    source = TORCH + OUTPUTS.replace("SOFTLY", softly).replace("KEPT", kept)
    assert told(source) == set()
    return {finding.code for finding in judge([observe_source(source, "train.py")])}


def test_outputs_that_a_backward_went_through_have_a_graph() -> None:
    """A note. Of two models, either may be the one that the graph is of."""
    assert noted("", "out") == {"GC212"}
    assert noted("", "out.argmax(1)") == noted("", "out.detach()") == set()
    assert noted("+ F.mse_loss(out, goal)", "goal") == set()


NOISE = """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(4, 2)

    def act(self, x):
        mean = self.mean(x)
        noise = torch.FloatTensor(mean.shape).uniform_(-self.alpha, self.alpha).to(device)
        mean = mean + noise
        return mean

policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
for x, y in loader:
    loss = (policy.act(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_what_a_function_makes_and_adds_to_is_its_own() -> None:
    found = judge([observe_source(TORCH + NOISE, "train.py")])
    assert "GC212" not in {finding.code for finding in found}


def test_what_a_function_is_given_and_adds_to_is_kept_by_others() -> None:
    program = loop(
        "total = 0",
        "total = grown(total, loss)  # GC212",
        "def grown(total, loss):\n    total = total + loss\n    return total\n",
    )
    assert told(program) == marked(program)

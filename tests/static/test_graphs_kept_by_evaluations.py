"""Graphs that pile up over an evaluation for which nobody switched gradients off; and what does not."""

from __future__ import annotations

from textwrap import indent

import pytest

from gradclinic.engine import judge
from gradclinic.findings import Severity
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked

PROGRAM = """
from torch.utils.data import DataLoader

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(loader):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

def validate(loader):
    model.eval()
{before}
    for x, y in loader:
{body}
{after}

train_loader, val_loader = DataLoader(torch.load("train")), DataLoader(torch.load("val"))
for epoch in range(10):
    train(train_loader)
    {call}
"""


def program(body: str, before: str = "", after: str = "", call: str = "validate(val_loader)") -> str:
    return TORCH + PROGRAM.format(
        before=indent(before, " " * 4), body=indent(body, " " * 8), after=indent(after, " " * 4), call=call
    )


BY_FLAG = """
from torch.utils.data import DataLoader

def run(model, loader, criterion, optimizer=None, train=False):
    losses = []
    model.train() if train else model.eval()
    for x, y in loader:
        if train:
            optimizer.zero_grad()
        loss = criterion(model(x), y)
        losses.append(loss)  # GC212
        if train:
            loss.backward()
            optimizer.step()
    return sum(losses) / len(losses)

model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    run(model, DataLoader(torch.load("a")), nn.CrossEntropyLoss(), optimizer, True)
    run(model, DataLoader(torch.load("b")), nn.CrossEntropyLoss())
"""

FAULTY = {
    "a sum of losses": program("loss = criterion(model(x), y)\ntotal += loss  # GC212", "total = 0"),
    "a sum over samples": program(
        "loss = criterion(model(x), y)\ntotal += loss * x.size(0)  # GC212", "total = 0.0"
    ),
    "a list of losses": program("losses.append(criterion(model(x), y))  # GC212", "losses = []"),
    "outputs": program(
        "outputs.append(model(x).cpu())  # GC212", "outputs = []", "return torch.cat(outputs)"
    ),
    "probabilities": program(
        "p = F.softmax(model(x), dim=1)\noutputs.append(p)  # GC212",
        "outputs = []",
        "return torch.cat(outputs)",
    ),
    "a tensor that grows": program(
        "seen = torch.cat([seen, model(x)])  # GC212", "seen = torch.empty(0)", "return seen.detach().numpy()"
    ),
    "a list that is lengthened by rows": program("rows += model(x)  # GC212", "rows = []", "return rows"),
    "by flag": TORCH + BY_FLAG,
}

RIGHT = {
    "numbers": program("total += criterion(model(x), y).item()", "total = 0"),
    "detached": program("outputs.append(model(x).detach())", "outputs = []"),
    "as arrays": program("outputs.append(model(x).detach().cpu().numpy())", "outputs = []"),
    "classes": program("outputs.append(model(x).argmax(1))", "outputs = []"),
    "hits": program("hits += (model(x).argmax(1) == y).sum()", "hits = 0"),
    "labels": program("out = model(x)\nlabels.append(y)", "labels = []"),
    "of one batch": program(
        "parts = []\nfor part in x.split(2):\n    parts.append(model(part))\ntorch.cat(parts).argmax(1)"
    ),
    "of one batch, added up": program(
        "total = 0\nfor part in x.split(2):\n    total += model(part).sum()\nprint(total.item())"
    ),
    "let go of now and then": program(
        "outputs.append(model(x))\nif len(outputs) > 3:\n    outputs.clear()", "outputs = []"
    ),
    "without gradients": program("with torch.no_grad():\n    total += criterion(model(x), y)", "total = 0"),
    "without gradients by the caller": program(
        "total += criterion(model(x), y)",
        "total = 0",
        call="with torch.no_grad():\n        validate(val_loader)",
    ),
    "under a decorator": program("total += criterion(model(x), y)", "total = 0").replace(
        "def validate", "@torch.no_grad()\ndef validate"
    ),
    "what a call out of sight may give as a number": program(
        "total += measure_loss(model(x), y)", "total = 0"
    ),
    "what is trained on in the end": program(
        "total += criterion(model(x), y)",
        "total = 0",
        "optimizer.zero_grad()\ntotal.backward()\noptimizer.step()",
    ),
    "what a model out of sight gives beside its output": program(
        "out, kinds = model(x)\nseen = torch.cat([seen, kinds])", "seen = torch.empty(0)"
    )
    .replace(
        "model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))", "model = Net()"
    )
    .replace("from torch.utils", "from nets import Net\nfrom torch.utils"),
    "by a caller out of sight": program("total += criterion(model(x), y)", "total = 0", call="pass"),
}


def kept(source: str) -> dict[tuple[str, int], str | None]:
    findings = judge([observe_source(source, "train.py")])
    return {(f.code, f.location.line): f.message for f in findings if f.code == "GC212" and f.location}


@pytest.mark.parametrize("source", FAULTY.values(), ids=FAULTY)
def test_what_an_evaluation_piles_up_is_told(source: str) -> None:
    assert kept(source).keys() == marked(source) != set()


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_nothing_is_told_of_one_that_keeps_no_graph(source: str) -> None:
    assert not kept(source)


def test_losses_are_warned_of_and_outputs_noted() -> None:
    found = {
        name: [f.severity for f in judge([observe_source(FAULTY[name], "train.py")]) if f.code == "GC212"]
        for name in ("a sum of losses", "outputs")
    }
    assert found == {"a sum of losses": [Severity.WARNING], "outputs": [Severity.INFO]}
    assert "of an evaluation" in str(kept(FAULTY["outputs"]))

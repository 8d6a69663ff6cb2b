"""Losses kept with their graph at times only, or by another way of adding up; and what is none of it."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.static.reading import TORCH, marked, told

LOOP = """
def train(model, loader, optimizer, criterion, writer):
{before}
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{keep}
"""


def loop(before: str, keep: str) -> str:
    return TORCH + LOOP.format(before=indent(before, " " * 4), keep=indent(keep, " " * 8))


PHASES = """
def train(model, loaders, criterion, optimizer):
    for epoch in range(10):
        for phase in ["train", "val"]:
            running = 0.0
            for x, y in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = criterion(model(x), y)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running += {added}
            print(phase, running)
"""

ELSEWHERE = """
from project.losses import compute

def fit(model, loader, optimizer):
    total = 0
    for batch in loader:
        {given} = compute(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += {added}
    return total / len(loader)
"""

CRITICS = """
G, D = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer_g, optimizer_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
history = []
for step, real in enumerate(loader):
    d_loss = D(G(torch.randn(8, 4)).detach()).mean() - D(real).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    if step % 5 == 0:
        g_loss = -D(G(torch.randn(8, 4))).mean()
        optimizer_g.zero_grad()
        g_loss.backward()
        optimizer_g.step()
        history.append((d_loss{number}, g_loss{number})){mark}
"""

FAULTY = {
    "every hundredth": loop("losses = []", "if step % 100 == 0:\n    losses.append(loss)  # GC212"),
    "where it is finite": loop("total = 0.0", "if torch.isfinite(loss):\n    total += loss  # GC212"),
    "where it is small": loop("total = 0.0", "if loss < 100:\n    total += loss  # GC212"),
    "where a setting asks for it": loop("total = 0.0", "if writer is not None:\n    total += loss  # GC212"),
    "turned around": loop("total = 0.0", "total = loss + total  # GC212"),
    "a moving mean": loop("mean = 0.0", "mean = 0.9 * mean + 0.1 * loss  # GC212"),
    "a moving mean, turned around": loop("mean = 0.0", "mean = 0.1 * loss + mean * 0.9  # GC212"),
    "of an attribute": loop("self = model", "self.mean = 0.9 * self.mean + 0.1 * loss  # GC212"),
    "in one phase of two": TORCH + PHASES.format(added="loss * x.size(0)  # GC212"),
    "one of what a call gives": TORCH + ELSEWHERE.format(given="loss, accuracy", added="loss  # GC212"),
    "one of a list that a call gives": TORCH + ELSEWHERE.format(given="[loss, _]", added="loss  # GC212"),
    "once in several steps of another": TORCH + CRITICS.format(number="", mark="  # GC212"),
}

TWO_PASSES = """
class Solver:
    def __init__(self, model, loader, optimizer):
        self.model, self.loader, self.optimizer = model, loader, optimizer

    def train(self):
        for epoch in range(10):
            self.run_once(epoch)
            with torch.no_grad():
                print(self.best(epoch))
            self.run_once(epoch, measuring=True)

    def run_once(self, epoch, measuring=False):
        total = 0
        for x, y in self.loader:
            predicted, wanted = self.model(x, y)
            loss, hits = performance(predicted, wanted)
            if not measuring:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            total += loss{number}
        return total / len(self.loader)
"""
FAULTY["in one pass of two"] = (
    TORCH + "from measures import performance\n" + TWO_PASSES.format(number="  # GC212")
)

RIGHT = {
    "numbers in both passes": TORCH
    + "from measures import performance\n"
    + TWO_PASSES.format(number=".item()"),
    "a measuring pass alone": TORCH
    + "from measures import performance\n"
    + TWO_PASSES.format(number="").replace("self.run_once(epoch)", "self.fit()"),
    "numbers": loop("losses = []", "if step % 100 == 0:\n    losses.append(loss.item())"),
    "the first alone": loop("losses = []", "if step == 0:\n    losses.append(loss)"),
    "the first few": loop("losses = []", "if step < 8:\n    losses.append(loss)"),
    "as many as there is room for": loop(
        "losses = []", "if writer and len(losses) < 8:\n    losses.append(loss)"
    ),
    "some by their numbers": loop("losses = []", "if step in (0, 10, 20):\n    losses.append(loss)"),
    "the first few, turned around": loop("losses = []", "if 8 > step:\n    losses.append(loss)"),
    "the last few": loop("losses = []", "if step >= len(loader) - 8:\n    losses.append(loss)"),
    "the last alone": loop("losses = []", "if step == len(loader) - 1:\n    losses.append(loss)"),
    "let go of every time": loop("total = 0.0", "if step % 10 == 0:\n    total = 0.0\ntotal += loss"),
    "the mean of numbers": loop("mean = 0.0", "mean = 0.9 * mean + 0.1 * loss.item()"),
    "the mean of what was detached": loop("mean = 0.0", "mean = 0.9 * mean + 0.1 * loss.detach()"),
    "a mean that is let go of": loop("mean = 0.0", "mean = (0.9 * mean + 0.1 * loss).detach()"),
    "one that begins anew": loop("", "mean = 0.5\nmean = 0.9 * mean + 0.1 * loss"),
    "numbers in both phases": TORCH + PHASES.format(added="loss.item() * x.size(0)"),
    "another of what a call gives": TORCH + ELSEWHERE.format(given="loss, accuracy", added="accuracy"),
    "a second loss, which may be a number": TORCH + ELSEWHERE.format(given="loss, a_loss", added="a_loss"),
    "numbers of both": TORCH + CRITICS.format(number=".item()", mark=""),
    "a sum that goes backward": TORCH
    + """
def train(model, loader, optimizer, criterion):
    for batch in loader:
        total = 0.0
        for step, (x, y) in enumerate(batch):
            loss = criterion(model(x), y)
            if torch.isfinite(loss):
                total = loss + total
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
""",
    "a state that is smoothed on its way to the loss": TORCH
    + """
cell, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
for xs, y in loader:
    state = torch.zeros(1, 4)
    for x in xs:
        state = 0.9 * state + 0.1 * cell(x)
    loss = F.mse_loss(head(state), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a residual connection, turned around": TORCH
    + """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) + x
        return x

block = Block()
optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    F.mse_loss(block(x), y).backward()
    optimizer.step()
""",
}


@pytest.mark.parametrize("source", FAULTY.values(), ids=FAULTY)
def test_what_is_kept_with_its_graph_is_told(source: str) -> None:
    assert {one for one in told(source) if one[0] == "GC212"} == marked(source) != set()


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_nothing_is_told_of_what_lets_go(source: str) -> None:
    assert "GC212" not in {code for code, _ in told(source)}

"""retain_graph=True in one arm of a condition, over data of several parts, beside meters; and right uses."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

ARMS = """
def train(model, loader, criterion, optimizer, scaler=None):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward({kept}){mark}
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward({other}){second}
            optimizer.step()
"""
KEPT = "retain_graph=True"

PARTS = """
def train(model, loader, criterion, optimizer, cuda):
    for data in loader:
        x, mask, y = [part.cuda() for part in data] if cuda else data
        loss = criterion(model(x, mask), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # GC209
        optimizer.step()
"""

METERS = """
def train(model, loader, criterion, optimizer, losses_meter, logger):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # GC209
        optimizer.step()
        losses_meter.update(loss, x.size(0))
        logger.add(loss=loss)
"""

LOGGER = """
from collections import defaultdict
from meters import Smoothed
from torchvision.utils import make_grid

class MetricLogger:
    def __init__(self):
        self.meters = defaultdict(Smoothed)

    def update(self, **values):
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                value = value.item()
            self.meters[name].update(value)

def train(model, loader, criterion, optimizer, writer):
    logger = MetricLogger()
    for step, (x, y) in enumerate(loader):
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # GC209
        optimizer.step()
        logger.update(loss=loss)
        writer.add_image("out", make_grid(out, 4), step)
"""

WRITTEN = """
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
edges = torch.load("edges")
degree = edges.sum(1).sqrt()
degree[degree == 0] = 1
features = torch.load("x") / degree
for epoch in range(100):
    loss = F.cross_entropy(model(features), torch.load("y"))
    optimizer.zero_grad()
    loss.backward(retain_graph=True)  # GC209
    optimizer.step()
"""

FAULTY = {
    "with data that a number was written to": WRITTEN,
    "in the first arm": ARMS.format(kept=KEPT, mark="  # GC209", other="", second=""),
    "in the second": ARMS.format(kept="", mark="", other=KEPT, second="  # GC209"),
    "in both": ARMS.format(kept=KEPT, mark="  # GC209", other=KEPT, second="  # GC209"),
    "over the parts of a batch": PARTS,
    "beside meters": METERS,
    "beside a logger that holds meters, and pictures": LOGGER,
}

RIGHT = {
    "gone through in the same arm": """
def train(model, head, loader, criterion, optimizer, penalty):
    for x, y in loader:
        hidden = model(x)
        loss = criterion(head(hidden), y)
        optimizer.zero_grad()
        if penalty:
            loss.backward(retain_graph=True)
            hidden.pow(2).mean().backward()
        else:
            loss.backward()
        optimizer.step()
""",
    "gone through behind the arms": """
def train(model, head, loader, criterion, optimizer, scaler=None):
    for x, y in loader:
        hidden = model(x)
        loss = criterion(head(hidden), y)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward(retain_graph=True)
        else:
            loss.backward(retain_graph=True)
        hidden.pow(2).mean().backward()
        optimizer.step()
""",
    "gone through if the same holds later": """
def train(model, head, loader, criterion, optimizer, penalty):
    for x, y in loader:
        hidden = model(x)
        loss = criterion(head(hidden), y)
        optimizer.zero_grad()
        if penalty:
            loss.backward(retain_graph=True)
        else:
            loss.backward()
        if penalty:
            hidden.pow(2).mean().backward()
        optimizer.step()
""",
    "with weights that a number was written to": """
model, scale = nn.Linear(4, 3), nn.Linear(4, 4)
optimizer = torch.optim.SGD([*model.parameters(), *scale.parameters()], lr=0.1)
degree = scale(torch.load("edges"))
degree[degree == 0] = 1
for epoch in range(100):
    loss = F.cross_entropy(model(torch.load("x") / degree), torch.load("y"))
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
""",
    "a logger that learns from it": """
class Logger:
    def __init__(self, critic):
        self.critic = critic

    def update(self, loss):
        self.critic.train_on(loss)

def train(model, loader, criterion, optimizer, critic):
    logger = Logger(critic)
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        logger.update(loss)
""",
    "an object that learns from it": """
def train(model, loader, criterion, optimizer, history):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        history.train_on(loss)
""",
}


@pytest.mark.parametrize("source", FAULTY.values(), ids=FAULTY)
def test_a_graph_kept_for_nobody_is_told(source: str) -> None:
    source = TORCH + source
    assert {one for one in told(source) if one[0] == "GC209"} == marked(source) != set()


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_one_that_is_needed_is_not(source: str) -> None:
    assert "GC209" not in {code for code, _ in told(TORCH + source)}

"""Batches fetched by a function of the file, schedules of several paces, and other beats of a loop."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

FETCHED_BY_THE_FILE_ITSELF = """
def get_batch(split):
    at = torch.randint(1000, (8,))
    return DATA[split][at], DATA[split][at + 1]

def run(model, rounds, gradient_accumulation_steps):
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = get_batch("train")
    for round in range(rounds):
        for micro_step in range(gradient_accumulation_steps):
            scores, loss = model(x, y)
            x, y = get_batch("train")
            loss.backward()  # GC106
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
"""
TICKS_PER_BATCH = """
from transformers import get_linear_schedule_with_warmup

def run(model, loader, args):
    optimizer = torch.optim.AdamW(model.parameters())
    total = len(loader) // args.gradient_accumulation_steps * args.epochs
    schedule = get_linear_schedule_with_warmup(optimizer, 100, total)
    for epoch in range(args.epochs):
        for i, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x), y) / args.gradient_accumulation_steps
            loss.backward()
            if (i + 1) % args.gradient_accumulation_steps == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
            schedule.step()  # GC113
"""
SCHEDULE_BY_ITS_MODULES_NAME = """
class Trainer:
    def __init__(self, model, loader, epochs):
        self.model, self.loader, self.epochs = model, loader, epochs
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.lr_scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 10)  # GC114

    def train_epoch(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()

    def fit(self):
        for epoch in range(self.epochs):
            self.train_epoch()
            torch.save({"o": self.optimizer.state_dict(), "s": self.lr_scheduler.state_dict()}, "last.pt")
"""
ORDERS_DRAWN_ONE_BY_ONE = """
import numpy as np

def batches(x, y, size):
    x = x[np.random.permutation(len(x))]
    y = y[np.random.permutation(len(y))]  # GC001
    for i in range(0, len(x), size):
        yield x[i:i + size], y[i:i + size]
"""
COLUMN_BLANKED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        hidden = torch.exp(self.first(x))
        hidden[:, 0] = 0  # GC207
        return self.second(hidden)

def run(loader):
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
"""
FAULTS = {
    "fetched": FETCHED_BY_THE_FILE_ITSELF,
    "ticks": TICKS_PER_BATCH,
    "named": SCHEDULE_BY_ITS_MODULES_NAME,
    "orders": ORDERS_DRAWN_ONE_BY_ONE,
    "blanked": COLUMN_BLANKED,
}
PUT_RIGHT = [
    ("fetched", "loss.backward()", "(loss / gradient_accumulation_steps).backward()"),
    ("fetched", "for micro_step in range(gradient_accumulation_steps):", "if round:"),
    (
        "ticks",
        "                optimizer.zero_grad()\n            s",
        "                optimizer.zero_grad()\n                s",
    ),
    ("ticks", "// args.gradient_accumulation_steps * args.epochs", "* args.epochs"),
    ("ticks", ", total)", ", total * args.gradient_accumulation_steps)"),
    (
        "named",
        "            self.train_epoch()\n",
        "            self.train_epoch()\n            self.lr_scheduler.step()\n",
    ),
    (
        "named",
        "            self.train_epoch()\n",
        "            self.train_epoch()\n            advance(self.lr_scheduler)\n",
    ),
    (
        "named",
        "            self.train_epoch()\n",
        "            self.train_epoch()\n            finish(self)\n",
    ),
    ("orders", "y[np.random.permutation(len(y))]", "y[np.arange(len(y))]"),
    ("orders", "    y = y[", "    np.random.seed(0)\n    y = y["),
    ("blanked", "torch.exp(self.first(x))", "torch.exp(self.first(x)).clone()"),
    ("blanked", "torch.exp(self.first(x))", "torch.clone(torch.exp(self.first(x)))"),
    ("blanked", "torch.exp(self.first(x))", "torch.exp(self.first(x)).float()"),
    ("blanked", "torch.exp(self.first(x))", "torch.exp(self.first(x)).contiguous()"),
    ("blanked", "torch.exp(self.first(x))", "torch.exp(self.first(x))\n        hidden = hidden.clone()"),
    ("blanked", "hidden[:, 0] = 0", "hidden = hidden.clone()\n        hidden += 1"),
    ("blanked", "torch.exp(self.first(x))", "self.first(x)"),
    ("blanked", "torch.exp(self.first(x))", "torch.exp(self.first(x)) * 2"),
    ("blanked", "hidden = torch.exp(self.first(x))", "hidden = torch.exp(x)"),
]


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told(name: str) -> None:
    source = TORCH + FAULTS[name]
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize(("name", "wrong", "right"), PUT_RIGHT)
def test_it_is_not_told_when_put_right(name: str, wrong: str, right: str) -> None:
    assert wrong in FAULTS[name]
    assert told(TORCH + FAULTS[name].replace(wrong, right)) == set()


TASKS = """
DATA = {task: torch.rand(1000, 4) for task in TASKS}

def get_batch(size, task):
    at = torch.randint(1000, (size,))
    return DATA[task][at], DATA[task][at]

model = nn.Linear(4, 4)
optimizer = torch.optim.AdamW(model.parameters())
for round in range(1000):
    optimizer.zero_grad()
    for ITEM in GOES_OVER:
        x, y = get_batch(8, ASKED)
        F.mse_loss(model(x), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("item", "over", "asked"),
    [
        ("task", "TASKS", "task"),
        ("domain", '("photo", "sketch")', "domain"),
        ("i", "range(len(TASKS))", "TASKS[i]"),
        ("i, task", "enumerate(TASKS)", "task"),
        ("env", "ENVS", "task=env.name"),
    ],
)
def test_batches_of_several_tasks_are_no_window(item: str, over: str, asked: str) -> None:
    source = TASKS.replace("ITEM", item).replace("GOES_OVER", over).replace("ASKED", asked)
    assert told(TORCH + source) == set()

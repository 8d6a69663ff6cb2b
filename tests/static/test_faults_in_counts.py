"""Clips of every partial gradient, in windows that are counted in all the ways there are.

Beside each, the same program with its clip at the end of the window: of that nothing is said.
"""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

A_SUM_OF_SIZES = """
def run(model, loader, optimizer, criterion, limit, epochs):
    for epoch in range(epochs):
        seen = 0
        for x, y in loader:
            loss = criterion(model(x), y) * x.size(0) / limit
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC111
            seen += x.size(0)
            if seen >= limit:
                optimizer.step()
                optimizer.zero_grad()
                seen = 0
"""

A_COUNT_SET_BACK = """
class Runner:
    def __init__(self, model, args):
        self.model = model
        self.args = args
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.waiting = 0

    def epoch(self, loader):
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y) / self.args.every
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # GC111
            self.waiting += 1
            if self.waiting == self.args.every:
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.waiting = 0
"""

A_COUNT_OVER_ALL_EPOCHS = """
def train(model, loader, optimizer, criterion, args, epoch):
    batches = len(loader)
    for i, (x, y) in enumerate(loader):
        number = i + batches * epoch
        loss = criterion(model(x), y) / args.every
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC111
        if number % args.every == 0:
            optimizer.step()
            optimizer.zero_grad()
"""

AN_END_THAT_IS_GIVEN = """
def run(model, loader, optimizer, criterion, args, batches):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / args.every
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC111
        if (i + 1) % args.every == 0 or i + 1 == batches:
            optimizer.step()
            optimizer.zero_grad()
"""

AN_END_BY_NAME = """
def run(model, loader, optimizer, criterion, args):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / args.every
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC111
        full = (i + 1) % args.every == 0
        last = i == args.batches - 1
        if full or last:
            optimizer.step()
            optimizer.zero_grad()
"""

A_STEP_CALLED_WITH_ITS_NUMBER = """
def step(model, batch, optimizer, number, every):
    loss = F.cross_entropy(model(batch[0]), batch[1]) / every
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC111
    if (number + 1) % every == 0:
        optimizer.step()
        optimizer.zero_grad()
"""

A_STEP_THAT_COUNTS_ITSELF = """
class Learner:
    def __init__(self, model, every):
        self.model = model
        self.every = every
        self.calls = 0
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def learn(self, x, y):
        self.calls += 1
        loss = F.mse_loss(self.model(x), y) / self.every
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # GC111
        if self.calls % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
"""

A_WINDOW_THAT_MAY_END_EARLY = """
def run(model, loader, optimizer, args):
    for x, y in loader:
        optimizer.zero_grad()
        size = x.size(0) // args.accum_freq
        for k in range(args.accum_freq):
            part = x[k * size : (k + 1) * size]
            if part.shape[0] == 0:
                break
            loss = F.cross_entropy(model(part), y[k * size : (k + 1) * size]) / args.accum_freq
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC111
        optimizer.step()
"""

THE_FIRST_YEARS = """
def run(model, loader, optimizer, args):
    for i, (x, y) in enumerate(loader):
        y = y.cuda(async=True)
        loss = F.cross_entropy(model(x), y) / args.iter_size
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC111
        if (i + 1) % args.iter_size == 0:
            optimizer.step()
            optimizer.zero_grad()
"""

A_MODULE_THAT_SETS_MODES_IN_A_COAT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)

    def train(self, mode=True):
        super().train(mode)
        self.body.eval()
        return self

    def groups(self):
        weights = []
        for m in self.modules():
            if isinstance(m, nn.Linear):
                weights.extend(m.parameters())
        return [{"params": weights}]

    def forward(self, x):
        return self.head(self.body(x))

def main(loader, args):
    model = Net()
    groups = model.groups()
    model = torch.nn.DataParallel(model).cuda()
    optimizer = torch.optim.SGD(groups, lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x), y) / args.every
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC111
        if (i + 1) % args.every == 0:
            optimizer.step()
            optimizer.zero_grad()
"""

FAULTS = {name: text for name, text in list(globals().items()) if name.startswith(("A_", "AN_", "THE_"))}


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told_where_it_is(name: str) -> None:
    source = TORCH + dedent(FAULTS[name])
    assert told(source) == marked(source)


@pytest.mark.parametrize("name", FAULTS)
def test_a_clip_at_the_end_of_the_window_is_right(name: str) -> None:
    clip = r"(?m)^ +(nn\.utils\.clip.*)  # GC111\n"
    (written,) = re.findall(clip, FAULTS[name])
    moved = re.sub(clip, "", FAULTS[name])
    moved = re.sub(r"(?m)^( +)(\S*optimizer\.step\(\))", rf"\1{written}\n\1\2", moved)
    assert told(TORCH + moved) == set()


FIRST_OF_EVERY_K = """
def run(model, loader, optimizer, criterion, every, epochs):
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / every
            loss.backward()
            if i % every == 0:
                optimizer.step()
                optimizer.zero_grad()
"""


def notes(source: str) -> list[str]:
    return [finding.code for finding in judge([observe_source(TORCH + source, "train.py")])]


@pytest.mark.parametrize("guard", ["i % every == 0", "not i % every", "i % 4 == 0", "(i + 1) % every == 0"])
def test_a_window_cut_by_the_epoch_is_noted_wherever_it_steps(guard: str) -> None:
    assert notes(FIRST_OF_EVERY_K.replace("i % every == 0", guard)) == ["GC108"]


@pytest.mark.parametrize(
    "guard", ["i % every == 0 or i == len(loader) - 1", "i % every == 0 or i == epochs - 1", "i % 2 == 0"]
)
def test_a_window_that_the_epoch_ends_too_is_right(guard: str) -> None:
    assert notes(FIRST_OF_EVERY_K.replace("i % every == 0", guard)) == []


def test_what_is_left_over_may_be_stepped_after_the_loop() -> None:
    flushed = "        optimizer.step()\n        optimizer.zero_grad()\n"
    assert notes(FIRST_OF_EVERY_K + flushed) == []


def test_a_count_over_all_epochs_cuts_no_window() -> None:
    counted = FIRST_OF_EVERY_K.replace("    for epoch", "    i = 0\n    for epoch", 1)
    counted = counted.replace("i, (x, y) in enumerate(loader)", "x, y in loader").replace(
        "loss.backward()", "loss.backward()\n            i += 1"
    )
    assert notes(counted) == []

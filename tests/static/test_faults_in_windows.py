"""Losses of a window that nobody divides by its length, with losses and phases as scripts have them."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from tests.static.reading import TORCH, marked, told

A_LOSS_MOVED_IF_IT_CAN_BE = """
def run(model, loader, args):
    loss_func = nn.CrossEntropyLoss()
    if torch.cuda.is_available():
        loss_func = loss_func.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (x, y) in enumerate(loader):
        loss = loss_func(model(x), y)
        loss.backward()  # GC106
        if (step + 1) % args.gradient_accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
"""

A_LOSS_OF_TWO = """
from losses import Smoothed

def run(model, loader, args):
    if args.smoothing > 0:
        criterion = Smoothed(args.smoothing)
    else:
        criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()  # GC106
        if (step + 1) % args.grad_accum == 0:
            optimizer.step()
            optimizer.zero_grad()
"""

A_LOSS_BY_CONFIGURATION = """
import factory

def run(model, loader, args):
    criterion = factory.get_loss(args)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()  # GC106
        if (step + 1) % args.grad_accum == 0:
            optimizer.step()
            optimizer.zero_grad()
"""

A_PHASE_AMONG_OTHERS = """
def run(phase, model, loader, criterion, args, optimizer=None):
    if phase in ("train",):
        model.train()
    elif phase in ("valid", "test"):
        model.eval()
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        if phase in ["train"]:
            loss.backward()  # GC106
            if (step + 1) % args.grad_accum == 0:
                optimizer.step()
                optimizer.zero_grad()

def main(model, loader, held_out, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        run("train", model, loader, nn.CrossEntropyLoss(), args, optimizer)
        with torch.no_grad():
            run("valid", model, held_out, nn.CrossEntropyLoss(), args)
"""

A_LIST_OF_WHAT_IS_WRONG = """
def broken(model, loss):
    found = []
    if torch.isnan(loss):
        found.append("the loss")
    for name, p in model.named_parameters():
        if torch.isnan(p).any():
            found.append(name)
    if found:
        print(found)
        return True
    return False

def run(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        if broken(model, loss):
            return float("inf")
        loss.backward()  # GC106
        if (step + 1) % args.grad_accum == 0:
            optimizer.step()
            optimizer.zero_grad()
"""

FAULTS = {name: text for name, text in list(globals().items()) if name.startswith("A_")}


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told_where_it_is(name: str) -> None:
    source = TORCH + dedent(FAULTS[name])
    assert told(source) == marked(source)


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_not_told_once_divided(name: str) -> None:
    source = TORCH + dedent(FAULTS[name])
    (length,) = set(re.findall(r"% (args\.\w+)", source))
    assert told(source.replace("loss.backward()", f"(loss / {length}).backward()")) == set()


def test_a_loss_that_is_told_to_sum_is_left_alone() -> None:
    summed = dedent(A_LOSS_MOVED_IF_IT_CAN_BE).replace("Loss()", 'Loss(reduction="sum")')
    assert told(TORCH + summed) == set()


FETCHED = """
from torch.utils.data import DataLoader

def run(model, data, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = 0
    for epoch in range(args.epochs):
        batches = iter(DataLoader(data))
        for _ in range(len(batches)):
            x, y = {fetch}
            loss = F.cross_entropy(model(x), y){scale}
            loss.backward(){mark}
            step += 1
            if step % args.accumulation == 0:
                optimizer.step()
                optimizer.zero_grad()
"""


@pytest.mark.parametrize("fetch", ["next(batches)", "batches.next()", "batches.__next__()"])
def test_batches_that_are_asked_for_one_by_one_make_a_window(fetch: str) -> None:
    source = TORCH + FETCHED.format(fetch=fetch, scale="", mark="  # GC106")
    assert told(source) == marked(source) != set()
    assert told(TORCH + FETCHED.format(fetch=fetch, scale=" / args.accumulation", mark="")) == set()


TWO_AT_ONCE = """
from torch.utils.data import DataLoader

def run(model, ours, theirs, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    near, far = iter(DataLoader(ours)), iter(DataLoader(theirs))
    for _ in range(args.steps):
        optimizer.zero_grad()
        (x, y), (z, _) = near.next(), far.next()
        loss = F.cross_entropy(model(x), y) + model(z).var()
        loss.backward()
        optimizer.step()
"""


def test_two_batches_for_one_loss_are_no_window() -> None:
    assert told(TORCH + TWO_AT_ONCE) == set()

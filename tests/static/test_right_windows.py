"""Windows, counts and collections that are right, and near to what is not."""

from __future__ import annotations

import pytest

from tests.rules.scripts import codes_by_lint
from tests.static.reading import TORCH

SOME_OF_THE_OPTIMIZERS = """
def epoch(model, optimizers, schedulers, loader, scaler=None):
    for x, y in loader:
        chosen = model.chosen()
        loss = F.cross_entropy(model(x), y)
        if scaler is not None:
            scaler.scale(loss).backward()
            for number, optimizer in enumerate(optimizers):
                if chosen is not None and number != chosen:
                    continue
                scaler.unscale_(optimizer)
        else:
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for number, (optimizer, scheduler) in enumerate(zip(optimizers, schedulers)):
            if chosen is not None and number != chosen:
                continue
            if scaler is not None:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
        for number, optimizer in enumerate(optimizers):
            optimizer.zero_grad()
"""

STEPS_THAT_ARE_BATCHES = """
import math
from diffusers.optimization import get_scheduler

def run(model, loader, max_train_steps, every):
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = get_scheduler("linear", optimizer=optimizer, num_training_steps=max_train_steps)
    done = 0
    for epoch in range(math.ceil(max_train_steps / len(loader))):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y) / every
            loss.backward()
            done += 1
            if done % every == 0:
                optimizer.step()
                optimizer.zero_grad()
            schedule.step()
"""

A_HEAD_TAKEN_OFF_AND_PUT_BACK = """
def run(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        model.classifier = nn.Sequential(*list(model.classifier.children())[:-1])
        collect(model, loader)
        layers = list(model.classifier.children())
        layers.append(nn.ReLU(inplace=True))
        model.classifier = nn.Sequential(*layers)
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
"""

A_STEP_WHOSE_CALLER_CLEARS = """
def step(model, batch, optimizer, number, every):
    loss = F.cross_entropy(model(batch[0]), batch[1])
    loss.backward()
    if (number + 1) % every == 0:
        optimizer.step()
"""

A_SUM_THAT_ENDS_THE_TRAINING = """
def run(model, loader, optimizer, patience, best):
    bad = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        bad += loss.item() > best
        if bad >= patience:
            break
"""

A_SUM_OF_SIZES_DIVIDED = """
def run(model, loader, optimizer, limit, epochs):
    for epoch in range(epochs):
        seen = 0
        for i, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x), y) * x.size(0) / limit
            loss.backward()
            seen += x.size(0)
            if seen >= limit or i + 1 == len(loader):
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                seen = 0
"""

STEPS_OF_A_SEQUENCE = """
def run(model, batches, optimizer, updates):
    for update in range(updates):
        done = False
        while not done:
            x, y, done = next(batches)
            F.mse_loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
"""

LOSSES_TAKEN_APART_FOR_PRIVACY = """
from privacy import PrivacyEngine

def run(model, loader, batch, micro, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    engine = PrivacyEngine(model, batch_size=batch, epochs=epochs, loss_reduction="mean")
    engine.attach(optimizer)
    accumulate = batch // micro
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
            F.cross_entropy(model(x), y).backward()
            if (i + 1) % accumulate == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
"""

A_CLOSURE_THAT_IS_ASKED_FOR_THE_LOSS_AS_WELL = """
def run(model, x, y, epochs):
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)
        if epoch % 10 == 0:
            print(epoch, closure().item())
"""

PROGRAMS = {name: text for name, text in list(globals().items()) if name.isupper() and name != "TORCH"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_said(name: str) -> None:
    assert codes_by_lint(TORCH + PROGRAMS[name]) == []


SUMS_BROUGHT_TO_SIZE = """
import torch
import torch.nn.functional as F

def train(model, windows):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for window in windows:
        optimizer.zero_grad()
        seen = 0
        for x, y in window:
            F.cross_entropy(model(x), y, reduction="sum").backward()
            seen += len(y)
        for p in model.parameters():
            p.grad /= seen
        optimizer.step()
"""


def test_sums_may_be_divided_as_gradients() -> None:
    assert codes_by_lint(SUMS_BROUGHT_TO_SIZE) == []
    assert "GC408" in codes_by_lint(SUMS_BROUGHT_TO_SIZE.replace("p.grad /= seen", "print(p.shape)"))


A_COUNT_UP_TO_MORE_THAN_IS_WALKED = """
def train(model, loader, optimizer):
    n = 0
    for x, y in loader:
        (F.cross_entropy(model(x), y) / 8).backward()
        n += 1
        if n == 8:
            optimizer.step()
            optimizer.zero_grad()
            n = 0

def run(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        train(model, loader, optimizer)
"""


def test_a_count_is_waited_for_however_far_it_goes() -> None:
    assert "GC104" not in codes_by_lint(TORCH + A_COUNT_UP_TO_MORE_THAN_IS_WALKED)
    undivided = A_COUNT_UP_TO_MORE_THAN_IS_WALKED.replace(" / 8)", ")")
    assert "GC106" in codes_by_lint(TORCH + undivided)

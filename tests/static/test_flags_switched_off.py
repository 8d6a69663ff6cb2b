"""Settings that a program changes where it may have to: `if not cuda: args.fp16 = False`."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

SETTINGS = {
    "an object": ("load(args)", "self.args.fp16", "self.args.fp16 = False"),
    "a dictionary": ('{"fp16": True, "epochs": 3}', 'self.args["fp16"]', 'self.args["fp16"] = False'),
    "an object of a class": ("Settings()", "self.args.fp16", "self.args.fp16 = False"),
}
TRAINER = """
from settings import load

class Settings:
    fp16 = True

class Trainer:
    def __init__(self, model, args, cuda):
        self.model = model
        self.args = {made}
        if not cuda:
            {off}

    def fit(self, loader):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        if {fp16}:
            scaler = torch.cuda.amp.GradScaler()
        for epoch in range(3):
            for x, y in loader:
                loss = F.mse_loss(self.model(x), y)
                optimizer.zero_grad()
                if {fp16}:
                    scaler.scale(loss).backward()
                    {unscale}
                else:
                    loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # GC501
                if {fp16}:
                    scaler.step(optimizer)
                    scaler.update()
                else:
                    optimizer.step()
"""


@pytest.mark.parametrize("kind", SETTINGS)
def test_what_may_be_switched_off_is_on_elsewhere(kind: str) -> None:
    made, fp16, off = SETTINGS[kind]
    source = TORCH + TRAINER.format(made=made, fp16=fp16, off=off, unscale="pass")
    assert told(source) == marked(source)


@pytest.mark.parametrize("kind", SETTINGS)
def test_and_is_asked_the_same_wherever_it_is_asked(kind: str) -> None:
    made, fp16, off = SETTINGS[kind]
    source = TRAINER.format(made=made, fp16=fp16, off=off, unscale="scaler.unscale_(optimizer)")
    assert told(TORCH + source) == set()


SWITCHED_OFF_FOR_GOOD = """
def fit(model, loader, args):
    args.fp16 = False
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        if args.fp16:
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
"""


def test_what_is_off_in_any_case_is_off() -> None:
    assert told(TORCH + SWITCHED_OFF_FOR_GOOD) == set()

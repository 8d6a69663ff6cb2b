"""Several optimizers in a list or a dictionary out of sight: one however a loop asks for them."""

from __future__ import annotations

import itertools

import pytest

from tests.static.reading import TORCH, told

FORMS = {
    "each": "for optimizer in {these}: optimizer.{act}()",
    "numbered": "for i, optimizer in enumerate({these}): optimizer.{act}()",
    "beside schedules": "for optimizer, schedule in zip({these}, schedules): optimizer.{act}()",
    "numbered pairs": "for i, (optimizer, schedule) in enumerate(zip({these}, schedules)): optimizer.{act}()",
    "by index": "for i in range(len({these})): {these}[i].{act}()",
    "comprehension": "[optimizer.{act}() for optimizer in {these}]",
    "items": "for name, optimizer in {these}.items(): optimizer.{act}()",
    "values": "for optimizer in {these}.values(): optimizer.{act}()",
    "by key": "for name in {these}: {these}[name].{act}()",
}
LOOP = """
import torch

class Trainer:
    def __init__(self, model, optimizers):
        self.model = model
        self.optimizers = optimizers
        self.opts = built(model)

    def train(self, loader, optimizers, schedules):
        for inputs, targets in loader:
            loss = self.model(inputs, targets)
            loss.backward()
            {step}
            {clear}
"""
OF_A_LIST = ["each", "numbered", "beside schedules", "numbered pairs", "by index", "comprehension"]
OF_A_DICTIONARY = ["items", "values", "by key"]


@pytest.mark.parametrize("these", ["optimizers", "self.optimizers", "self.opts"])
@pytest.mark.parametrize(
    ("step", "clear"),
    [
        *itertools.product(OF_A_LIST, repeat=2),
        *itertools.product(OF_A_DICTIONARY, repeat=2),
    ],
)
def test_what_one_loop_steps_another_clears(step: str, clear: str, these: str) -> None:
    program = LOOP.format(
        step=FORMS[step].format(these=these, act="step"),
        clear=FORMS[clear].format(these=these, act="zero_grad"),
    )
    assert told(program) == set()


@pytest.mark.parametrize("step", [*OF_A_LIST[:4], "items", "values"])
def test_what_a_loop_steps_and_nothing_clears_is_told(step: str) -> None:
    program = LOOP.format(step=FORMS[step].format(these="optimizers", act="step"), clear="pass")
    assert {code for code, _ in told(program)} == {"GC101"}


LOADED = """
import torch
from store import load

def main(model, loader, path, levels, schedules):
    optimizers = []
    for level in range(0, levels):
        optimizers.append(torch.optim.Adam(model.part(level)))
    if path is not None:
        model, optimizers = load(model, optimizers, path)
    for inputs, targets in loader:
        {clear}
        loss = model(inputs, targets)
        loss.backward()
        {step}
"""


@pytest.mark.parametrize(("step", "clear"), [*itertools.product(OF_A_LIST, repeat=2)])
def test_what_a_checkpoint_brings_is_stepped_once_each(step: str, clear: str) -> None:
    program = LOADED.format(
        step=FORMS[step].format(these="optimizers", act="step"),
        clear=FORMS[clear].format(these="optimizers", act="zero_grad"),
    )
    assert told(program) == set()


def test_a_wrapper_that_is_given_the_parameters_of_an_optimizer_only() -> None:
    """Once an internal fault: there is no optimizer among what it is given."""
    source = """
from amp_c import FP16Optimizer
model = nn.Linear(3, 1)
inner = torch.optim.SGD(model.parameters(), lr=0.1)
outer = FP16Optimizer(inner.param_groups)
for x, y in loader:
    F.mse_loss(model(x), y).backward()
    outer.step()
    outer.zero_grad()
"""
    assert told(TORCH + source) == set()

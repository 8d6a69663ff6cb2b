"""`**kwargs` of which a function takes its optimizer: one, however often it is asked for."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

LOOP = TORCH + """
from project import clear_all

def cleared(**kwargs):
    kwargs["optimizer"].zero_grad()

def fit(model, loader, **kwargs):
    {before}
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        loss.backward(){mark}
        {step}
        {after}
"""
BY_KEY = 'kwargs["optimizer"].step()'


@pytest.mark.parametrize(
    ("before", "step"), [("pass", BY_KEY), ('optimizer = kwargs["optimizer"]', "optimizer.step()")]
)
def test_an_optimizer_taken_out_of_keywords_is_one(before: str, step: str) -> None:
    faulty = LOOP.format(before=before, step=step, after="pass", mark="  # GC101")
    assert told(faulty) == marked(faulty) != set()
    cleared = 'kwargs["optimizer"].zero_grad()'
    assert told(LOOP.format(before=before, step=step, after=cleared, mark="")) == set()


@pytest.mark.parametrize(
    "after",
    [
        "cleared(**kwargs)",
        "clear_all(kwargs)",
        "clear_all(**kwargs)",
        "for optimizer in kwargs.values(): optimizer.zero_grad()",
    ],
)
def test_keywords_that_are_handed_on_may_be_cleared(after: str) -> None:
    assert told(LOOP.format(before="pass", step=BY_KEY, after=after, mark="")) == set()


def test_a_dictionary_filled_out_of_sight_is_gone_over_as_a_whole() -> None:
    program = TORCH + """
from project import fill

def fit(model, loader):
    optimizers = {}
    fill(optimizers, model)
    for x, y in loader:
        for optimizer in optimizers.values():
            optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizers["optimizer"].step()
"""
    assert told(program) == set()

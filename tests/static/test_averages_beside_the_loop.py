"""What keeps an average of the weights, or looks at them, neither clears gradients nor steps."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

LOOP = """
from project import Averaged, bank, clip_weights, early_stopping, ema, ema_optimizer, refresh
from project import soft_update, update_target, update_teacher

def train(args, loader, target, teacher):
    model = args.build()
    follower = Averaged(model)
    model_ema = args.average(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        {clear}
        loss = F.cross_entropy(model(x), y)
        loss.backward(){mark}
        optimizer.step()
        {call}
"""
KEEPS = [
    "ema.update(model)",
    "model_ema.update(model)",
    "args.ema.update_parameters(model)",
    "ema.step(model.parameters())",
    "soft_update(target, model, 0.005)",
    "update_teacher(model, teacher, 0.99)",
    "update_teacher(model, teacher, args.rate)",
    "model.update_moving_average()",
    "model.module.update_teacher(0.99)",
    "clip_weights(model, 0.01)",
    "early_stopping(loss.item(), model)",
]
MAY_CLEAR = [
    "refresh(model)",
    "bank.update(model)",
    "ema_optimizer.step(model)",
    "update_target(model, optimizer)",
    "update_teacher(model, x)",
    "update_teacher(model, teacher, loader)",
    "update_teacher(model, teacher, x)",
    "model.update_teacher(x)",
    "soft_update(model, lambda: optimizer.zero_grad())",
]


@pytest.mark.parametrize("call", KEEPS)
def test_who_follows_the_weights_clears_nothing(call: str) -> None:
    source = TORCH + LOOP.format(clear="pass", mark="  # GC101", call=call)
    assert told(source) == marked(source)
    assert told(TORCH + LOOP.format(clear="optimizer.zero_grad()", mark="", call=call)) == set()


@pytest.mark.parametrize("call", MAY_CLEAR)
def test_others_may(call: str) -> None:
    assert told(TORCH + LOOP.format(clear="pass", mark="", call=call)) == set()

"""Calls not followed before a clip of scaled gradients: who has the scaler may take its scale out."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

LOOP = """
from project.amp import *

def train(model, loader):
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        {call}
        nn.utils.clip_grad_norm_(model.parameters(), 1.0){mark}
        scaler.step(optimizer)
        scaler.update()
"""

MAY_UNSCALE = [
    "prepare_gradients(optimizer, scaler)",
    "unscale_gradients(scaler, optimizer)",
    "check_gradients(model, optimizer, scaler)",
    "norm = get_grad_norm(scaler, optimizer)",
    "finite = gradients_are_finite(scaler=scaler, optimizer=optimizer)",
    "log_gradients(dict(optimizer=optimizer, scaler=scaler))",
    "PreparedGradients(optimizer, scaler)()",
]


@pytest.mark.parametrize("call", MAY_UNSCALE)
def test_who_is_given_the_scaler_may_have_unscaled(call: str) -> None:
    assert told(TORCH + LOOP.format(call=call, mark="")) == set()


def test_who_may_have_unscaled_once_has_not_done_so_twice() -> None:
    twice = "check_all(optimizer, scaler); check_all(optimizer, scaler); scaler.unscale_(optimizer)"
    assert told(TORCH + LOOP.format(call=twice, mark="")) == set()


@pytest.mark.parametrize("call", ["print(optimizer)", "progress.set_description(str(loss.item()))"])
def test_who_is_not_leaves_the_scale_in(call: str) -> None:
    source = TORCH + LOOP.format(call=call, mark="  # GC501")
    assert told(source) == marked(source)


HUNG_UP_BEFORE = """
from project.amp import *

def train(model, optimizer, loader):
    scaler = torch.amp.GradScaler()
    {call}
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0){mark}
        scaler.step(optimizer)
        scaler.update()
"""


def test_what_is_hung_up_with_the_scaler_may_unscale_in_every_batch() -> None:
    for call in ("install_unscale_hooks(model, optimizer, scaler)", "add_hooks(optimizer, amp=scaler)"):
        assert told(TORCH + HUNG_UP_BEFORE.format(call=call, mark="")) == set()


@pytest.mark.parametrize(
    "call",
    ["resume(model, optimizer, scaler)", "install_hooks(model)", "CheckpointHook(model, optimizer, scaler)"],
)
def test_what_is_restored_or_has_no_scaler_does_not(call: str) -> None:
    source = TORCH + HUNG_UP_BEFORE.format(call=call, mark="  # GC501")
    assert told(source) == marked(source)

"""Steps that are left out for the size of the gradients: the scaler wants its update all the same."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

LOOP = """
def run(model, loader, config):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        scaler.unscale_(optimizer)  # GC502
        norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip)
{step}
"""
ONLY_WHERE_SMALL = """
        if norm < config.limit:
            scaler.step(optimizer)
            scaler.update()
"""
ONLY_WHERE_FINITE = """
        if torch.isfinite(norm):
            scaler.step(optimizer)
            scaler.update()
        else:
            print("left out")
"""
BY_A_FLAG = """
        skip = False
        if norm.item() > config.limit:
            print("too large")
            skip = True
        if not skip:
            scaler.step(optimizer)
            scaler.update()
"""
ON_TO_THE_NEXT = """
        if norm > config.limit:
            print("too large")
            continue
        scaler.step(optimizer)
        scaler.update()
"""
FAULTS = [ONLY_WHERE_SMALL, ONLY_WHERE_FINITE, BY_A_FLAG, ON_TO_THE_NEXT]


@pytest.mark.parametrize("step", FAULTS)
def test_the_update_is_left_out_with_the_step(step: str) -> None:
    source = TORCH + LOOP.format(step=step)
    assert told(source) == marked(source)


UPDATED_ALL_THE_SAME = """
        if norm < config.limit:
            scaler.step(optimizer)
        scaler.update()
"""
UPDATED_IN_EITHER_CASE = """
        if norm > config.limit:
            scaler.update()
            continue
        scaler.step(optimizer)
        scaler.update()
"""
ANOTHER_STEP_INSTEAD = """
        if norm < config.limit:
            scaler.step(optimizer)
            scaler.update()
        else:
            halve_the_rate(optimizer)
            scaler.step(optimizer)
            scaler.update()
"""
ONLY_SPOKEN_OF = """
        if norm > config.limit:
            print("too large")
        scaler.step(optimizer)
        scaler.update()
"""
A_SETTING = """
        if config.max_grad_norm > 0 and config.trains:
            scaler.step(optimizer)
            scaler.update()
"""
A_HELPER_THAT_MAY_UPDATE = """
        if norm < config.limit:
            scaler.step(optimizer)
            scaler.update()
        else:
            recover(scaler, optimizer)
"""


@pytest.mark.parametrize(
    "step",
    [
        UPDATED_ALL_THE_SAME,
        UPDATED_IN_EITHER_CASE,
        ANOTHER_STEP_INSTEAD,
        ONLY_SPOKEN_OF,
        A_SETTING,
        A_HELPER_THAT_MAY_UPDATE,
    ],
)
def test_the_scaler_is_updated_in_every_iteration(step: str) -> None:
    assert told(TORCH + LOOP.format(step=step)) == set()


@pytest.mark.parametrize("step", FAULTS)
def test_nothing_was_unscaled(step: str) -> None:
    source = LOOP.format(step=step).replace("        scaler.unscale_(optimizer)  # GC502\n", "")
    source = source.replace(
        "clip_grad_norm_(model.parameters(), config.clip)",
        "clip_grad_norm_(model.parameters(), float('inf'))",
    )
    assert told(TORCH + source) == set()

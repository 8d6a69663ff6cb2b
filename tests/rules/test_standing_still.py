"""A loss that comes back to where it began has not stood still; one that never left its noise has."""

from __future__ import annotations

import random

import pytest

from gradclinic.facts import Actor, ActorKind
from gradclinic.facts.training import Step, Training
from gradclinic.rules.health._progress import Verdict, progress


def run(losses: list[float]) -> Training:
    steps = tuple(Step(i, loss, 1.0, 1.0, (0.1,)) for i, loss in enumerate(losses))
    return Training(Actor("optimizer", ActorKind.OPTIMIZER, "optimizer", "SGD"), (), steps, taken=len(steps))


@pytest.mark.parametrize("seed", range(5))
def test_noise_around_one_level_is_flat(seed: int) -> None:
    draw = random.Random(seed)
    assert progress(run([1.1 + 0.06 * draw.gauss(0, 1) for _ in range(300)])).verdict is Verdict.FLAT


@pytest.mark.parametrize("seed", range(5))
def test_a_detour_and_back_is_not(seed: int) -> None:
    draw = random.Random(seed)
    levels = (0.88, 0.97, 1.05, 0.93, 0.88)
    losses = [level + 0.06 * draw.gauss(0, 1) for level in levels for _ in range(60)]
    assert progress(run(losses)).verdict is Verdict.UNKNOWN


def test_a_creep_without_noise_is_flat() -> None:
    assert progress(run([2.3026 - 2e-6 * update for update in range(300)])).verdict is Verdict.FLAT

"""An objective that falls as fast at the end as ever: a wrong sign, or what an actor earns."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.facts import Actor, ActorKind, Observation, Source
from gradclinic.facts.training import Step, TensorInfo, Training


def _codes(first: float, *, alone: bool) -> set[str]:
    steps = tuple(Step(i, first - 0.2 * i, 1.0, 1.0, (1e-3,)) for i in range(300))
    adam = Actor("optimizer-1", ActorKind.OPTIMIZER, "optimizer", "Adam")
    tensors = (TensorInfo("net.weight", (4, 4), "Linear"),)
    training = Training(optimizer=adam, tensors=tensors, steps=steps, taken=300, alone=alone)
    return {finding.code for finding in judge([Observation(Source.RUNTIME, ((training,),))])}


def test_a_likelihood_that_never_slows_down_is_told() -> None:
    assert _codes(2.0, alone=True) == {"GC413"}


@pytest.mark.parametrize(
    ("first", "alone"),
    [pytest.param(2.0, False, id="an actor beside its critic"), pytest.param(-0.5, True, id="a reward")],
)
def test_what_is_meant_to_grow_without_bound_is_not(first: float, alone: bool) -> None:
    assert "GC413" not in _codes(first, alone=alone)

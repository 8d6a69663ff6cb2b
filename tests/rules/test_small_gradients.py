"""First layers that get little gradient in a run that stands still: with Adam they move all the same."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.facts import Actor, ActorKind, Observation, Source
from gradclinic.facts.training import Sample, Step, TensorInfo, Training


def _codes(optimizer: str, weaker: float) -> set[str]:
    tensors = tuple(TensorInfo(f"layers.{i}.weight", (8, 8), "Linear") for i in range(4))
    gradients = (0.1 / weaker, 0.1, 0.1, 0.1)
    steps = tuple(Step(i, 5.4 + 0.04 * (i % 2), 0.2, 0.2, (1e-3,), gradients=gradients) for i in range(100))
    samples = tuple(Sample(i, weights=(1.0,) * 4, updates=(1e-3,) * 4) for i in range(0, 100, 10))
    training = Training(
        optimizer=Actor("optimizer-1", ActorKind.OPTIMIZER, "optimizer", optimizer),
        tensors=tensors,
        steps=steps,
        samples=samples,
        taken=100,
        alone=True,
        adaptive=optimizer == "Adam",
    )
    return {finding.code for finding in judge([Observation(Source.RUNTIME, ((training,),))])}


@pytest.mark.parametrize(
    ("optimizer", "weaker", "told"),
    [("SGD", 2e3, True), ("SGD", 5e2, False), ("Adam", 2e3, False), ("Adam", 1e6, True)],
)
def test_a_gradient_that_fades_is_told_where_it_matters(optimizer: str, weaker: float, told: bool) -> None:
    assert ("GC602" in _codes(optimizer, weaker)) is told

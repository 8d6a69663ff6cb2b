"""The gradients of every combination agree with a plain loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.train.matrix import (
    COMBINATIONS,
    TOLERANCE,
    Combination,
    disagreement,
    expected_gradients,
    on_one_rank,
    stepped_gradients,
)
from tests.train.ranks import RANKS, on_ranks


@pytest.mark.parametrize("one", COMBINATIONS, ids=str)
def test_one_process(one: Combination) -> None:
    found = stepped_gradients(one, rank=0, wrap="none")
    assert disagreement(found, expected_gradients(one, ranks=1)) < TOLERANCE[one.precision]


@pytest.mark.parametrize("wrap", ["DDP", "FSDP2"])
def test_two_ranks(wrap: str, tmp_path: Path) -> None:
    """All combinations in one process group: starting one costs more than they do."""
    wrong = [
        f"{one} on rank {rank}: off by {error:.1e}"
        for rank, found in enumerate(on_ranks(on_one_rank, tmp_path, wrap))
        for one, gradients in zip(COMBINATIONS, found, strict=True)
        if (error := disagreement(gradients, expected_gradients(one, RANKS))) >= TOLERANCE[one.precision]
    ]
    assert not wrong

"""Shared by the tests of experiments: one thread, and the example potential as its own files import it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

POTENTIAL = Path(__file__).parent.parent.parent / "examples" / "potential"


@pytest.fixture(scope="session")
def potential():
    """The module `cases` of the example."""
    sys.path.insert(0, str(POTENTIAL))
    import cases

    yield cases
    sys.path.remove(str(POTENTIAL))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small models train fastest on one, and alike on every machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

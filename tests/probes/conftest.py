"""The example potential, importable as its own files import each other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

POTENTIAL = Path(__file__).parent.parent.parent / "examples" / "potential"


@pytest.fixture(scope="session")
def potential():
    """The module `cases` of the example."""
    sys.path.insert(0, str(POTENTIAL))
    import cases

    yield cases
    sys.path.remove(str(POTENTIAL))

"""Histograms by power of two: how the sizes of many numbers are spread, whatever their unit."""

from __future__ import annotations

from collections.abc import Sequence

LOWEST, HIGHEST, WIDTH = -42, 8, 2
BINS = 2 + (HIGHEST - LOWEST) // WIDTH
"""Exact zeros, then ever larger numbers, two powers of two to a bin; the last also holds the non-finite."""


def edges() -> list[float]:
    """The lower end of each bin but that of the zeros, as powers of two."""
    return [float(LOWEST + WIDTH * place) for place in range(BINS - 1)]


def together(counts: Sequence[float]) -> list[float]:
    """One histogram of all tensors from those of each, laid end to end."""
    return [sum(counts[place::BINS]) for place in range(BINS)]

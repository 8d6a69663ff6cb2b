"""How often what is measured: everything at first, and ever less while nothing odd is seen."""

from __future__ import annotations

from typing import NamedTuple

_FIRST = 5
"""Updates of which everything is measured,"""
_SPREAD = 100
"""and the histograms of one in so many."""


class _Stage(NamedTuple):
    """From an update on, one in so many has …"""

    begins: int
    gradients: int
    """the norm of each gradient measured,"""
    weights: int
    """its weights compared before and after,"""
    closely: int
    """and with them what costs most."""


_STAGES = (_Stage(200, 4, 100, 200), _Stage(50, 2, 20, 60), _Stage(0, 1, 10, 50))


def gradients_due(index: int) -> bool:
    return index % _stage(index).gradients == 0


def weights_due(index: int) -> bool:
    return index < _FIRST or index % _stage(index).weights == 0


def closely_due(index: int) -> bool:
    return index < _FIRST or index % _stage(index).closely == 0


def histograms_due(index: int) -> bool:
    return index % _SPREAD == 0


def _stage(index: int) -> _Stage:
    return next(stage for stage in _STAGES if index >= stage.begins)

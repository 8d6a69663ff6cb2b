"""Questions to a census that several rules ask."""

from __future__ import annotations

import re
from collections.abc import Callable

from gradclinic.facts import Census, Parameter

ENOUGH_STEPS = 3


def stale(census: Census) -> list[Parameter]:
    """Held by an optimizer that steps, registered by no model that runs, never given a gradient."""
    return [
        p
        for p in census.parameters
        if p.holders
        and p.trainable
        and not p.registered
        and not p.hidden_in
        and not p.reached
        and p.updates >= 2
    ]


def orphans(census: Census) -> list[Parameter]:
    """Trainable, given gradients, never written to, and held by no optimizer."""
    return [
        p
        for p in census.parameters
        if p.trainable
        and p.reached
        and (p.registered or p.loose)
        and not p.holders
        and not p.changed
        and p.training
        and p.updates >= ENOUGH_STEPS
    ]


def has_twin(parameter: Parameter, census: Census, alive: Callable[[Parameter], bool]) -> bool:
    """One of several alike in a list or dict, of which others are `alive`: an expert, a dropped layer."""
    return any(alive(other) for other in twins(parameter, census) if other is not parameter)


def twins(parameter: Parameter, census: Census) -> list[Parameter]:
    """Itself and those alike in a list or dict; none for a parameter that is in neither."""
    pattern = _pattern(parameter.name)
    if pattern == parameter.name:
        return []
    return [other for other in census.parameters if _pattern(other.name) == pattern]


def _pattern(name: str) -> str:
    return re.sub(r"\b\d+\b", "#", name)

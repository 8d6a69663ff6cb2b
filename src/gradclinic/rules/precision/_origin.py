"""Words for the operation that made a value which is not finite."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.facts.training import Breakdown, Origin


def origin_of(origin: Origin | None) -> dict[str, str]:
    if origin is None:
        return {}
    label = "made by" if origin.certain else "could be made by"
    place = f" at {origin.where}" if origin.where else ""
    return {label: f"{origin.operation}{place}: {origin.because}"}


def place_of(breakdown: Breakdown) -> Location | None:
    """The operation's own line if it is known, else where the value came to light."""
    origin = breakdown.origin
    return (origin.where if origin else None) or breakdown.where

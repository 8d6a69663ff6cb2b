"""All the facts one source brings to the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gradclinic.facts.source import Source
from gradclinic.frozen import sealed


@sealed
class Observation:
    source: Source
    cases: tuple[tuple[object, ...], ...] = ()
    """Each case is one thing observed, told by one or more facts of one type. Several facts mean
    alternatives: the paths a program may take. A run has one path, source often has many."""
    gaps: Mapping[str, str] = field(default_factory=dict)
    """What could not be observed and why: `{"graph shape": "the model is compiled"}`."""
    rank: int | None = None
    """Of the process, in a distributed run."""

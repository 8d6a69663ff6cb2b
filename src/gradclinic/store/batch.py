"""What was told since the last writing."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from gradclinic.facts import Actor
from gradclinic.facts.training import Activation, Sample, Step, TensorInfo


@dataclass
class Batch:
    about: dict[str, object] = field(default_factory=dict)
    introduced: dict[str, tuple[Actor, tuple[TensorInfo, ...]]] = field(default_factory=dict)
    steps: defaultdict[str, list[tuple[float, Step]]] = field(default_factory=lambda: defaultdict(list))
    """By optimizer, each with the time of day."""
    samples: defaultdict[str, list[Sample]] = field(default_factory=lambda: defaultdict(list))
    activations: defaultdict[str, list[Activation]] = field(default_factory=lambda: defaultdict(list))
    documents: dict[str, str] = field(default_factory=dict)
    events: list[tuple[int, float, str, str, str]] = field(default_factory=list)
    """Step, time, kind, severity, text."""

"""How graphs were used, kept and cut across a run."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class RetainedGraph:
    """A call site of backward with `retain_graph=True`."""

    where: Location
    calls: int
    used: bool
    """A later backward went through one of these graphs."""
    nodes: int
    """Operations of the largest graph it kept."""


@frozen
class KeptGraphs:
    """Losses of earlier updates that still exist, graph and all."""

    where: Location
    alive: int
    of: int
    """How many were looked for; 0 when it was read from source, where none can be counted."""
    outputs: bool = False
    """What is kept are tensors on the way to the losses."""
    evaluating: bool = False
    """They are those of an evaluation, which go through no backward."""


@frozen
class AnomalyMode:
    where: Location
    backwards: int
    of: int
    lasting: bool = False
    """Read from source: nothing turns it off, so the counts say nothing of how long it lasts."""


@frozen
class DataWrite:
    """Parameters that train, changed through `.data`, again and again."""

    where: Location
    backward: Location | None = None
    """A backward after it, through a forward before it: its gradient is that of neither weights."""


@frozen
class UncheckedGradient:
    """A result of `autograd.grad(..., allow_unused=True)` that is computed with and never asked for None."""

    where: Location
    used: Location


@frozen
class BareCheckpoint:
    """Reentrant checkpointing of something trainable, given no input that requires a gradient."""

    where: Location
    module: str
    calls: int

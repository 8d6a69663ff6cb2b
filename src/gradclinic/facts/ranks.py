"""What the ranks of a distributed run have in common, or should have."""

from __future__ import annotations

from typing import ClassVar

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen

Print = tuple[float, ...]
"""A few numbers by which two tensors are told apart: the norm, then some of the values."""
DISTRIBUTED = "distributed training"


@frozen
class Look:
    """Weights and gradients of a replicated model right before one update, by parameter."""

    update: int
    """Counts from 1."""
    weights: tuple[Print, ...]
    gradients: tuple[Print | None, ...]
    rates: tuple[float, ...] = ()


@frozen
class Replica:
    """One rank's copy of a model whose copies must stay equal."""

    model: str
    """What the user calls it."""
    rank: int
    ranks: tuple[int, ...]
    """All ranks that hold a copy."""
    parameters: tuple[str, ...]
    looks: tuple[Look, ...]
    built: Location | None = None
    """Where it was made a replica of the others."""
    stepped: Location | None = None
    number: int = 0
    """Tells the replicated models of one program apart, in the order of their making."""
    by_hand: bool = False
    """No wrapper of torch keeps the copies equal."""
    exchanged: bool = True
    """Its weights were sent to all ranks before its first update, or its gradients averaged."""


@frozen
class Replicas:
    """The copies of one model, those of them that left a record."""

    what: ClassVar[str] = DISTRIBUTED
    copies: tuple[Replica, ...]


@frozen
class ShardedShuffle:
    """A sampler that gives each rank its share of a shuffled order, which its epoch number decides."""

    what: ClassVar[str] = DISTRIBUTED
    where: Location
    """The loop that reads the data, or in source the sampler itself."""
    epochs: tuple[int, ...] | None
    """The sampler's epoch in each pass that trained, in order; None for a source that never sets it."""

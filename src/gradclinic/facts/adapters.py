"""Adapters that are trained on top of a model, and what is saved with them."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class HeadLeftOut:
    """A new head on a model whose adapter saves its own weights only."""

    where: Location
    """The configuration of the adapter."""
    head: str
    """The class of the model with the new head."""
    saved: Location
    """Where the adapter is saved."""

"""State of a model that its state_dict does not hold."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class PlainState:
    """A tensor in a plain attribute of a module, which the forward reads and only data could give again."""

    name: str
    """`model.mean`"""
    where: Location
    """The assignment."""
    assigned: str
    """What is assigned there: `data.mean(0)`."""
    saved: bool
    """The model's state_dict was saved in this run, and this tensor by no other way."""

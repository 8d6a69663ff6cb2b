"""In which mode a model was trained and evaluated."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class ModeOfTraining:
    """Updates of a model that has layers which behave differently in train and eval mode."""

    model: str
    in_train: int | None
    in_eval: int | None
    """Updates whose forward ran with the whole model in eval mode; None when read from source."""
    layers: tuple[str, ...]
    where: Location | None = None
    """The forward of the first update in eval mode, if there was one."""
    set_at: Location | None = None
    """The call that put the model in eval mode."""


@frozen
class Evaluation:
    """Forwards of a trained model that no backward followed, from one place."""

    model: str
    where: Location
    forwards: int | None
    """None when read from source: as many as there is data."""
    training: bool
    """The model was in train mode."""
    builds_graph: bool
    layers: tuple[str, ...] = ()
    """Layers whose mode matters."""
    evidence: str = ""
    """Why this is taken for an evaluation."""
    called_in_sight: bool = True
    """False for a source that leaves a doubt: the caller, who may have switched gradients off, or a call
    given the loss, which may be a backward, is not in sight."""
    set_at: Location | None = None
    """The call that put the model into this mode, where it is known."""
    at_once: bool = False
    """One forward on all of the data, which keeps no more than a step of training does."""

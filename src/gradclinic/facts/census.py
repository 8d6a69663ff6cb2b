"""Who is who in a run: what the models register, what the optimizers hold, what the loss reached."""

from __future__ import annotations

from functools import cached_property

from gradclinic.facts.cut import Cut
from gradclinic.facts.location import Location
from gradclinic.frozen import frozen, sealed


@frozen
class Parameter:
    name: str
    """As the user would write it, `model.head.weight`; a shape for one that no module registers."""
    shape: tuple[int, ...]
    trainable: bool = True
    holders: tuple[str, ...] = ()
    """Ids of the optimizers that held it when they stepped."""
    updates: int = 0
    """Steps its holders took, or all optimizers if none holds it."""
    registered: bool = True
    """A model that ran has it among its parameters, and still had it when its optimizer stepped last."""
    hidden_in: str = ""
    """The plain list, tuple or dict that keeps its module from being registered: `model.layers (list)`."""
    reached: bool = True
    """A backward gave it a gradient, be it zeros, while a model had it."""
    always_zero: int = 0
    """How often its gradient was looked at, when it was exactly zero each time; else 0."""
    ran: bool = True
    """Its module was called with gradients on, in the first steps."""
    runs: float = 1.0
    """How often that was in each call of the model."""
    training: bool = True
    """Its module was in train mode."""
    loaded: bool = False
    """It got its value from a state_dict."""
    changed: bool = False
    """Something wrote into it while the run was watched."""
    moved_frozen: bool = False
    """A step changed its values although it does not require a gradient."""
    built: Location | None = None
    """Where the module that owns it was made."""
    owner: str = ""
    """The class of that module."""
    storage: int = 0
    """Equal for parameters that share their memory."""
    model: str = ""
    """The id of the model that registers it."""
    copy_of: str = ""
    """The embedding whose values this weight of a linear layer began with, in memory of its own."""
    loose: bool = False
    """A backward reached it, and no model is known to have it."""
    cut: Cut | None = None
    """Where the way from it to the loss was cut, when that was seen."""


@frozen
class Group:
    """A parameter group of an optimizer at its first step."""

    parameters: tuple[str, ...]
    lr: float = 0.0
    weight_decay: float = 0.0
    eps: float | None = None
    eps_in_state: float | None = None
    """What eps becomes in the precision of the optimizer's state."""
    dtype: str = "float32"
    duplicates: int = 0
    """Parameters that the group lists more than once."""
    bytes: int = 0
    """What its parameters take on this rank."""
    at_once: bool = False
    """A step goes over all tensors operation by operation (`foreach`), not tensor by tensor."""


@frozen
class Holder:
    """An optimizer and what it holds."""

    id: str
    name: str
    type: str
    built: Location | None
    steps: int
    groups: tuple[Group, ...] = ()


@frozen
class RunningNorm:
    """A normalisation layer that keeps running statistics."""

    name: str
    frozen: bool
    """It has weights, none required a gradient at last and none changed since then."""
    updates: int
    """How often its statistics moved since it was frozen, while optimizers stepped."""
    built: Location | None = None


@sealed
class Census:
    parameters: tuple[Parameter, ...]
    holders: tuple[Holder, ...] = ()
    norms: tuple[RunningNorm, ...] = ()
    stepped_twice: tuple[tuple[str, str, int], ...] = ()
    """Two optimizers that used one gradient on the same parameters, and how many those are."""
    hand_written: bool = False
    """Some weights were updated by hand, so not being in an optimizer proves nothing."""
    complete: bool = True

    @cached_property
    def by_id(self) -> dict[str, Holder]:
        return {holder.id: holder for holder in self.holders}

    def holder_of(self, parameter: Parameter) -> Holder | None:
        return next((self.by_id[id] for id in parameter.holders if id in self.by_id), None)

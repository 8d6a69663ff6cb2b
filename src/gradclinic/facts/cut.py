"""Places where a value left the autograd graph on its way into the objective."""

from __future__ import annotations

from enum import StrEnum

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


class CutKind(StrEnum):
    ITEM = "item"
    """`.item()`, `float(t)`, `.tolist()`"""
    DETACH = "detach"
    """`.detach()` or `.data`"""
    NO_GRAD = "no_grad"
    """Computed while gradients were off."""
    TENSOR = "tensor"
    """`torch.tensor(t)` of something that carries a graph."""
    NUMPY = "numpy"
    """Through NumPy and back."""
    GRAD = "autograd.grad"
    """A gradient taken without `create_graph`."""
    VARIABLE = "variable"
    """`Variable(t, requires_grad=True)`, which makes a new leaf of it."""
    CHOICE = "choice"
    """`argmax` and other answers that are whole numbers."""
    CHECKPOINT = "checkpoint"
    """Reentrant checkpointing that was given nothing to differentiate."""


class CutRole(StrEnum):
    WHOLE = "whole"
    """What was given to backward had no graph left."""
    TERM = "term"
    """A summand of the objective had no graph left, others had."""
    PATH = "path"
    """The objective kept a graph, but parameters behind the cut were reached by no other way."""


@frozen
class Cut:
    kind: CutKind
    role: CutRole
    where: Location | None
    """The line that cut; None when it was not seen."""
    backward: Location
    parameters: tuple[str, ...] = ()
    """Trainable parameters behind the cut; for a path those that nothing else reached."""
    silenced: bool = False
    """`requires_grad_()` was called on the result, so backward raised no error."""
    failed: bool = False
    """backward raised an error about it."""

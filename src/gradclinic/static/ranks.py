"""Training on several ranks: which backward makes them exchange their gradients."""

from __future__ import annotations

from collections.abc import Iterable

from gradclinic.static.supposing import suppose
from gradclinic.static.values import Const, Lib, Model, Tensor, Value, overlap
from gradclinic.static.walk import Walk

REPLICATES = frozenset({"DistributedDataParallel", "DDP"})


def wrap(walk: Walk, model: Model) -> Model:
    """`ddp = DDP(model)`: who calls `model` from now on goes around the wrapper."""
    wrapper = model.wrapped(walk.assigning)
    if suppose(walk) and wrapper.name != model.name:
        model.bypasses = wrapper.name
    return wrapper


def is_wrapper(value: Value, asked: Iterable[Value]) -> bool:
    """What `hasattr(model, "module")` and `isinstance(model, DDP)` ask, if it surely holds."""
    return (
        isinstance(value, Model)
        and value.inner is not None
        and any(
            (isinstance(one, Const) and one.value == "module")
            or (isinstance(one, Lib) and one.name.rpartition(".")[2] in REPLICATES)
            for one in asked
        )
    )


def note_forward(walk: Walk, model: Model) -> None:
    """A forward of the wrapper arranges the exchange of the backward that follows."""
    if model.inner is None or walk.no_grad or walk.survey.defers:
        return
    if walk.unsynced:
        walk.reducing.pop(model.name, None)
    else:
        walk.reducing[model.name] = model.whole()


def reduction(walk: Walk, loss: Tensor) -> dict[str, object]:
    for name, keys in walk.reducing.items():
        if loss.models and overlap(loss.models, keys):
            return {"reduces": name}
    return {}

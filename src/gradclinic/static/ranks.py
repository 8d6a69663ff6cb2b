"""Training on several ranks: which backward makes them exchange their gradients."""

from __future__ import annotations

from gradclinic.static.values import Model, Tensor, overlap
from gradclinic.static.walk import Walk

REPLICATES = frozenset({"DistributedDataParallel", "DDP"})


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

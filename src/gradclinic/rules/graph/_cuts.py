"""Cuts of the graph, in words."""

from __future__ import annotations

from gradclinic.facts import Cut, CutKind
from gradclinic.rules._naming import listed

HOW = {
    CutKind.ITEM: "turned into a number",
    CutKind.DETACH: "detached",
    CutKind.NO_GRAD: "computed with gradients off",
    CutKind.TENSOR: "rewrapped by torch.tensor()",
    CutKind.NUMPY: "passed through NumPy",
    CutKind.GRAD: "taken by autograd.grad without create_graph",
    CutKind.VARIABLE: "wrapped anew by Variable()",
    CutKind.CHOICE: "computed of an argmax, which has no gradient",
    CutKind.CHECKPOINT: "checkpointed without a gradient",
}


def cut_seen(cut: Cut) -> dict[str, object]:
    """The evidence about a cut."""
    about: dict[str, object] = {}
    if cut.where is not None:
        about["cut"] = f"{HOW[cut.kind]} at {cut.where}"
    about["given to backward"] = str(cut.backward)
    if cut.parameters:
        about["parameters behind it"] = listed(cut.parameters)
    return about

"""Models of torchvision that were given another last layer."""

from __future__ import annotations

from gradclinic.static.flow.values import Chain, Layer
from gradclinic.static.values import Const, Instance, Unknown, Value

LAST = "<last>"
"""What an Unknown holds the layer by that was put in its last place."""
_HEADS = ("fc", "classifier", "head", "heads")
_LAST_LAYERS = {
    "vgg": 6, "alexnet": 6, "mobilenet_v2": 1, "mobilenet_v3": 3, "efficientnet": 1, "convnext": 2,
}  # fmt: skip
"""How many layers come before the last one in the classifier of each family."""


def replaced_head(func: Value) -> Value | None:
    """The layer that a model of torchvision ends in, if the file has put in its own."""
    if not isinstance(func, Unknown) or not func.path.startswith("torchvision.models."):
        return None
    heads = [func.attrs[name] for name in _HEADS if name in func.attrs]
    if len(heads) != 1:
        return None
    head = heads[0].attrs.get(LAST) if isinstance(heads[0], Unknown) else heads[0]
    return head if isinstance(head, (Layer, Chain, Instance)) else None


def is_last(base: Unknown, index: Value) -> bool:
    """`vgg16().classifier[6]`: the last of the layers that a model of torchvision ends in."""
    if not base.path.startswith("torchvision.models.") or not base.path.endswith(".classifier"):
        return False
    last = next((number for family, number in _LAST_LAYERS.items() if f".{family}" in base.path), -1)
    return isinstance(index, Const) and index.value in (-1, last)

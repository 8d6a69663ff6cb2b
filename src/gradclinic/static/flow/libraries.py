"""Models and layers of other libraries than torch, where their making says what they end in."""

from __future__ import annotations

import ast

from gradclinic.static.flow.machine import Machine
from gradclinic.static.flow.values import Chain, Layer, Listed
from gradclinic.static.values import Const, Instance
from gradclinic.static.walk import Arguments

_ENDINGS = {"sigmoid": "sigmoid", "softmax": "softmax", "softmax2d": "softmax"}
"""What models of a library for segmentation are told to end in."""


def layer_of_library(machine: Machine, name: str, args: Arguments, node: ast.Call) -> Layer | None:
    where = machine.at(node)
    if name.startswith("segmentation_models_pytorch."):
        activation = args.keywords.get("activation")
        if isinstance(activation, Const) and activation.value in _ENDINGS:
            return Layer(_ENDINGS[activation.value], machine.new_id(), trainable=True, where=where)
    # `GCNConv(16, 7)` makes its weights itself; another is given a network to apply.
    applies = any(isinstance(value, (Chain, Instance, Layer, Listed)) for value in args.all())
    if name.startswith("torch_geometric.nn.") and name.endswith("Conv") and not applies:
        layer = Layer("conv", machine.new_id(), trainable=True, where=where)
        machine.log.layers[layer.id] = f"the {name.rpartition('.')[2]} of line {where.line}"
        return layer
    return None

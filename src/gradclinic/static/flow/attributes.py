"""`x.name` for every kind of x."""

from __future__ import annotations

import ast

from gradclinic.facts import CutKind
from gradclinic.static import words
from gradclinic.static.flow import torch_names as torch
from gradclinic.static.flow.functions import call_function, is_module
from gradclinic.static.flow.machine import Machine
from gradclinic.static.flow.tensors import cut_off, reshaped
from gradclinic.static.flow.torch_calls import weights_of
from gradclinic.static.flow.values import (
    SHADOW,
    WITHIN,
    Chain,
    Either,
    Flow,
    Layer,
    Listed,
    Loss,
    Weights,
    as_tensor,
    changed,
    found_in,
    shadowed,
)
from gradclinic.static.values import Bound, ClassDef, Const, Func, Instance, Lib, Unknown, Value, library
from gradclinic.static.walk import Arguments


def attribute_of(machine: Machine, base: Value, node: ast.Attribute) -> Value:
    attr, base = node.attr, as_tensor(base)
    if isinstance(base, Lib):
        return library(f"{base.name}.{attr}")
    if attr == "_modules" and _has_modules(base):
        return Unknown("<module>._modules", {WITHIN: base}, holds=(SHADOW,))
    if isinstance(base, Instance):
        return _of_instance(machine, base, node)
    if isinstance(base, Flow):
        if attr == "data":
            return cut_off(base, CutKind.DETACH, machine.at(node))
        if attr in ("shape", "device", "dtype", "ndim", "is_cuda", "requires_grad", "grad_fn"):
            return Unknown(f"<tensor>.{attr}")
        if attr == "grad":
            if base.cut is not None and base.cut.silenced:
                machine.log.asked_for.add(base.cut.where)
            return Flow(grad=False)
        return reshaped(base) if attr in torch.SHAPING else changed(base, ops=(), scalar=attr == "loss")
    if isinstance(base, ClassDef):
        return base.find(attr) or Unknown(f"{base.qualname}.{attr}")
    if isinstance(base, (Layer, Chain, Listed, Loss, Either)):
        if attr == "module":
            return base
        alike = _of_all(base, attr) if isinstance(base, Either) else None
        if alike is not None:
            return alike
        return Weights(weights_of(base).owners) if attr in ("weight", "bias") else Bound(base, attr)
    if isinstance(base, Unknown):
        if attr in ("weight", "bias") and attr not in base.attrs:
            return Flow(nodes=frozenset({machine.new_id()}), known=False)
        if attr not in base.attrs:
            base.attrs[attr] = found_in(base, _inferred(base, attr))
        return base.attrs[attr]
    if isinstance(base, Weights):
        if attr == "data":
            return Weights(base.owners, raw=True)
        return Flow(grad=False) if attr == "grad" else base
    return Bound(base, attr)


def _has_modules(base: Value) -> bool:
    """Whether `base._modules` is torch's own, and nothing that a class of the project calls so."""
    if isinstance(base, Instance):
        return is_module(base.cls) and "_modules" not in base.attrs
    return isinstance(base, (Chain, Listed))


def _of_all(base: Either, attr: str) -> Value | None:
    """The number or word that all options have by this name, whichever it is."""
    found = [option.attrs.get(attr) if isinstance(option, Instance) else None for option in base.options]
    first = found[0]
    same = isinstance(first, Const) and all(
        isinstance(one, Const) and one.value == first.value for one in found
    )
    return first if same else None


def _inferred(base: Unknown, attr: str) -> Unknown:
    path = f"{base.path}.{attr}"
    setting = words.SETTINGS.search(path) or words.SETTING_NAME.search(attr)
    return Unknown(path, holds=() if setting else base.holds)


def _of_instance(machine: Machine, base: Instance, node: ast.Attribute) -> Value:
    attr = node.attr
    found = base.attrs.get(attr) or base.cls.find(attr)
    if isinstance(found, Func) and attr not in base.attrs:
        bound = Func(found.node, found.frame, found.qualname, base, found.decorators)
        if "property" in found.decorators:
            return call_function(machine, bound, Arguments(), node)
        return found if any(name.endswith("staticmethod") for name in found.decorators) else bound
    if found is not None:
        return found
    if attr == "module" and is_module(base.cls):
        return base
    if attr in ("training", "device") or attr in torch.MODULE_SAME:
        return Bound(base, attr) if attr in torch.MODULE_SAME else Unknown(f"self.{attr}")
    setting = words.SETTINGS.search(f"self.{attr}") or words.SETTING_NAME.search(attr)
    return Unknown(f"self.{attr}") if setting else shadowed(f"self.{attr}")

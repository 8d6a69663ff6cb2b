"""Models that are changed after they were built: a layer replaced, taken out or hooked into.

What is changed in a way that is not followed gives nobody knows what: its trail ends there.
"""

from __future__ import annotations

import re

from gradclinic.static.flow import torch_names as torch
from gradclinic.static.flow.bases import below
from gradclinic.static.flow.functions import is_module, replaces_output
from gradclinic.static.flow.joining import join
from gradclinic.static.flow.machine import Machine
from gradclinic.static.flow.values import WITHIN, Chain, Either, Flow, Index, Layer, Listed, changed
from gradclinic.static.syntax import names_in
from gradclinic.static.values import NONE, ClassDef, Const, Func, Instance, Lib, Unknown, Value
from gradclinic.static.walk import Arguments
from gradclinic.static.words import Pattern

_CHANGED = "<changed>"
"""An attribute of models whose output is no longer what their forward gives."""
_PARTS = frozenset({"modules", "named_modules", "children", "named_children", "_modules"})
_PUTS_IN = frozenset({"Identity", "setattr", "delattr", "_modules", "Sequential", "set_submodule"})
"""What a function speaks of that puts other layers into a model it is applied to."""
_SETS_WEIGHTS = Pattern(r"init|weight|param|bias|xavier|kaiming|reset|freeze|grad|set_|mode|bn|norm", re.I)
"""Functions that, as most that are applied to a model, leave its layers where they are."""
_ANYTHING = Layer("", 0, trainable=False, hooked=True)


def is_changed(instance: Instance) -> bool:
    return _CHANGED in instance.attrs


def doubt(module: Value) -> None:
    """It was changed, and what it gives now is not known."""
    if isinstance(module, Instance):
        module.attrs[_CHANGED] = NONE
    elif isinstance(module, (Chain, Listed)):
        module.parts.append(_ANYTHING)
    elif isinstance(module, Layer) and module.id:
        module.op, module.hooked = "", True
    elif isinstance(module, Either):
        for option in module.options:
            doubt(option)
    elif isinstance(module, Unknown) and WITHIN in module.attrs:
        doubt(module.attrs[WITHIN])


def lost(value: Value) -> Value:
    return changed(value, ops=(), choices=()) if isinstance(value, Flow) else value


def is_part(value: Value) -> bool:
    """Whether it can take the place of a layer."""
    return isinstance(value, (Layer, Chain, Listed, Instance, Either, Func, ClassDef))


def put_item(machine: Machine, base: Value, index: Value, value: Value) -> None:
    """`model.head[-1] = nn.Identity()`, `model._modules["head"] = nn.Identity()`"""
    if isinstance(base, Unknown):
        _put_into_unknown(base, value)
    elif isinstance(base, Instance):
        put_item(machine, below(base) or NONE, index, value)
    elif isinstance(base, (Chain, Listed)):
        position = _position(index, len(base.parts))
        if position is None:
            doubt(base)
        else:
            before = base.parts[position]
            base.parts[position] = join(before, value, "<layer>") if machine.branch else value


def put_attribute(machine: Machine, base: Value, name: Value, value: Value) -> None:
    """`setattr(model, "head", nn.Identity())`, and what is put on a chain or into a part of a model."""
    if isinstance(base, Instance) and isinstance(name, Const):
        attr = str(name.value)
        before = base.attrs.get(attr) if machine.branch else None
        base.attrs[attr] = join(before, value, attr) if before is not None else value
    elif isinstance(base, Unknown):
        _put_into_unknown(base, value)
    elif is_part(value) or isinstance(value, Unknown):
        doubt(base)


def _put_into_unknown(base: Unknown, value: Value) -> None:
    if WITHIN in base.attrs and (is_part(value) or isinstance(value, Unknown)):
        doubt(base)


def take_out(machine: Machine, base: Value, index: Value) -> Value:
    """`del model.head[-1]`, `del model.act`, and what was there."""
    if isinstance(base, (Chain, Listed)):
        position = _position(index, len(base.parts))
        if position is not None and not machine.branch:
            return base.parts.pop(position)
    elif isinstance(base, Instance) and isinstance(index, Const) and not machine.branch:
        return base.attrs.pop(str(index.value), NONE)
    doubt(base)
    return Unknown("<layer>")


def _position(index: Value, count: int) -> int | None:
    """Layers of a chain are numbered, and named by their numbers."""
    at = index.value if isinstance(index, (Const, Index)) else None
    number = int(at) if isinstance(at, str) and at.isdigit() else at
    return number if type(number) is int and -count <= number < count else None


def call_edit(machine: Machine, base: Value, attr: str, args: Arguments) -> Value | None:
    """A method that looks into a model or changes it; None for others."""
    first = args.positional[0] if args.positional else NONE
    if isinstance(base, Unknown):
        if attr == "pop" and WITHIN in base.attrs:
            doubt(base)
        return None
    if isinstance(base, Instance):
        if not is_module(base.cls) or base.cls.find(attr) is not None:
            return None
    elif not isinstance(base, (Chain, Listed, Layer, Either)):
        return None
    if attr in _PARTS:
        return Unknown(f"<module>.{attr}()", {WITHIN: base})
    if attr == "register_forward_hook" and replaces_output(args.get(0, "hook") or NONE):
        doubt(base)
        return NONE
    if attr == "apply" and _may_put_in(first):
        doubt(base)
    if attr == "pop" and isinstance(base, (Chain, Listed)):
        return take_out(machine, base, first if args.positional else Const(-1))
    if attr == "insert" and isinstance(base, (Chain, Listed)) and len(args.positional) == 2:
        position = _position(first, len(base.parts) + 1)
        if position is None or machine.branch:
            doubt(base)
        else:
            base.parts.insert(position, args.positional[1])
        return base
    if attr == "get_submodule":
        return _below(base, first) or Unknown("<module>", {WITHIN: base})
    if attr == "set_submodule" and len(args.positional) > 1:
        _set_below(machine, base, first, args.positional[1])
        return NONE
    return None


def _may_put_in(function: Value) -> bool:
    """Whether a function that is applied to all parts of a model may change them for others."""
    if isinstance(function, Func):
        return not _PUTS_IN.isdisjoint(names_in(function.node))
    name = function.name if isinstance(function, Lib) else getattr(function, "path", "")
    return not name.startswith(("builtins.", "torch.")) and not _SETS_WEIGHTS.search(name)


def _below(base: Value, path: Value) -> Value | None:
    """The part of a model at `head.3`."""
    for name in path.value.split(".") if isinstance(path, Const) and isinstance(path.value, str) else [""]:
        if isinstance(base, Instance) and name in base.attrs:
            base = base.attrs[name]
        elif (
            isinstance(base, (Chain, Listed))
            and (position := _position(Const(name), len(base.parts))) is not None
        ):
            base = base.parts[position]
        else:
            return None
    return base


def _set_below(machine: Machine, base: Value, path: Value, value: Value) -> None:
    above, _, last = path.value.rpartition(".") if isinstance(path, Const) else ("", "", "")
    holder = _below(base, Const(above)) if above else base
    if holder is None or not last:
        doubt(base)
    elif isinstance(holder, (Chain, Listed)):
        put_item(machine, holder, Const(last), value)
    else:
        put_attribute(machine, holder, Const(last), value)


def call_on_attributes(machine: Machine, name: str, args: Arguments) -> Value | None:
    """`setattr` and `delattr`; None for others."""
    if name == "builtins.setattr" and len(args.positional) == 3:
        base, attr, value = args.positional
        if isinstance(base, Instance) and not isinstance(attr, Const):
            put_attribute(machine, Unknown("", {WITHIN: base}), attr, value)
        else:
            put_attribute(machine, base, attr, value)
        return NONE
    if name == "builtins.delattr" and len(args.positional) == 2:
        take_out(machine, *args.positional)
        return NONE
    return None


def is_kind(value: Value, asked: Value) -> bool | None:
    """Whether a layer is one of a class of torch, `isinstance(model.act, nn.Softmax)`; None if unknown."""
    name = asked.name.removeprefix("torch.nn.") if isinstance(asked, Lib) else ""
    if isinstance(value, Chain) and name == "Sequential":
        return True
    told = torch.LAYERS.get(name, name.lower() if name in torch.WEIGHTLESS - torch.SHAPE_LAYERS else "")
    if not told or not isinstance(value, (Layer, Chain)):
        return None
    if isinstance(value, Chain) or (value.op and value.op != told):
        return False
    alike = [one for one, op in torch.LAYERS.items() if op == told]
    return True if (value.op and len(alike) < 2) or told == "softmax" == value.op else None


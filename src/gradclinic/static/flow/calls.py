"""Calls: functions, classes and modules of the file are entered, torch is known, the rest is out of sight."""

from __future__ import annotations

import ast
import re

from gradclinic.facts import CutKind, Op
from gradclinic.static import words
from gradclinic.static.flow import collections
from gradclinic.static.flow import torch_names as torch
from gradclinic.static.flow.bases import add_below, below, build_below
from gradclinic.static.flow.edits import call_edit, call_on_attributes, is_changed, is_kind, lost
from gradclinic.static.flow.fitting import LOSS_KEYWORDS, handed_together
from gradclinic.static.flow.functions import call_function, instantiate, is_module
from gradclinic.static.flow.heads import replaced_head
from gradclinic.static.flow.items import item_of, named_in, zipped
from gradclinic.static.flow.joining import join_returned
from gradclinic.static.flow.libraries import layer_of_library
from gradclinic.static.flow.losses import call_loss
from gradclinic.static.flow.machine import Machine, Write
from gradclinic.static.flow.neighbours import ENDS_OR_JUDGES, imported
from gradclinic.static.flow.out_of_sight import A_MODEL, out_of_sight
from gradclinic.static.flow.padding import fill_up, loaded, padding_of
from gradclinic.static.flow.stepping import stepped
from gradclinic.static.flow.tensors import cut_off, derived, reshaped
from gradclinic.static.flow.torch_calls import call_tensor, call_torch, duplicated, run_backward, weights_of
from gradclinic.static.flow.values import (
    BUILT,
    SHADOW,
    Chain,
    Either,
    Flow,
    Layer,
    Listed,
    Loss,
    Weights,
    as_tensor,
    changed,
    flows_in,
    made_of,
    shadowed,
)
from gradclinic.static.values import (
    NONE,
    Bound,
    ClassDef,
    Const,
    Func,
    Instance,
    Lib,
    Map,
    Partial,
    Seq,
    Unknown,
    Value,
)  # fmt: skip
from gradclinic.static.walk import Arguments

_STORES = words.Pattern(r"append|add$|push|store|put|insert|extend|remember|memori[sz]e|enqueue|cache")
_BACKWARDS = ("backward", "manual_backward")
_NOT_THE_PROJECT = (
    "numpy",
    "math",
    "os.",
    "sys.",
    "time",
    "random",
    "functools",
    "copy",
    "json",
    "logging",
    "tqdm",
)


_APPLIES = {"data_parallel": 1, "functional_call": 2}
"""Functions of torch that run the module they are given first, and where what they run it on stands."""
_REARRANGES = words.names("rearrange repeat")
_AVERAGES = words.Pattern(r"Meter$|^Averager?$")
_BARS = words.names("tqdm tqdm_notebook track progress_bar ProgressBar")
"""Give what they are given, and show how far it has come."""


def call(machine: Machine, func: Value, args: Arguments, node: ast.Call, name: str) -> Value:
    if isinstance(func, Func):
        return call_function(machine, func, args, node)
    if isinstance(func, ClassDef):
        return instantiate(machine, func, args, node)
    if isinstance(func, Lib):
        return _library(machine, func.name, args, node)
    if isinstance(func, Loss):
        return call_loss(machine, func, args, machine.at(node))
    if isinstance(func, (Layer, Chain)):
        return _through(machine, func, args, node)
    if isinstance(func, Either):
        return _call_one_of(machine, func.options, args, node, name)
    if isinstance(func, Instance):
        return _call_instance(machine, func, args, node)
    if isinstance(func, Bound):
        return call_method(machine, func.base, func.attr, args, node)
    if isinstance(func, Partial):
        joined = Arguments([*func.args, *args.positional], {**func.keywords, **args.keywords}, args.partial)
        return call(machine, func.func, joined, node, name)
    if name in _BARS and args.positional:  # by whatever import it came
        return args.positional[0]
    head = replaced_head(func)
    if head is not None:
        return call(machine, head, Arguments([Flow()]), node, name)
    runs = isinstance(func, Unknown) and A_MODEL.search(func.path)
    result = out_of_sight(machine, func, "forward" if runs else name, args, node)
    built = func.attrs.get(BUILT) if isinstance(func, Unknown) else None
    if isinstance(built, Seq) and isinstance(result, Flow):
        known = _call_one_of(machine, built.items, args, node, name)
        return changed(result, choices=_choices([known])) if isinstance(known, Flow) else result
    return result


def _call_one_of(machine: Machine, options: list[Value], args: Arguments, node: ast.Call, name: str) -> Value:
    machine.choosing += 1
    try:
        results = [call(machine, option, args, node, name) for option in options]
    finally:
        machine.choosing -= 1
    result = results[0]
    for other in results[1:]:
        result = join_returned(result, other, name)
    if isinstance(result, Flow) and not result.ops:
        return changed(result, choices=_choices(results))
    return result


def _choices(results: list[Value]) -> tuple[tuple[Op, ...], ...]:
    """The ways that the results were made in."""
    flows = [result for result in results if isinstance(result, Flow)]
    return tuple(dict.fromkeys(trail for flow in flows for trail in (flow.choices or (flow.ops,)) if trail))


def call_method(machine: Machine, base: Value, attr: str, args: Arguments, node: ast.Call) -> Value:
    base = as_tensor(base)
    if isinstance(base, Flow):
        return call_tensor(machine, base, attr, args, node)
    if isinstance(base, Lib):
        return _library(machine, f"{base.name}.{attr}", args, node)
    if attr == "module" and isinstance(base, (Layer, Chain, Instance)) and args.all():
        return call(machine, base, args, node, attr)
    edited = call_edit(machine, base, attr, args)
    if edited is not None:
        return edited
    if attr == "step":
        stepped(machine, base, args, node)
    if attr in _BACKWARDS and not isinstance(base, Instance):
        given = args.get(0, "loss")
        if given is None and _is_number(node.func):
            base = cut_off(Flow(scalar=True), CutKind.ITEM, machine.at(node), form="number")
        run_backward(machine, given if given is not None and flows_in(given) else base, args, node)
        return NONE
    if isinstance(base, Instance):
        return _method_of_instance(machine, base, attr, args, node)
    if isinstance(base, ClassDef):
        found = base.find(attr)
        return call(machine, found, args, node, attr) if found else Unknown(f"{base.qualname}.{attr}()")
    if isinstance(base, Either) and attr not in torch.MODULE_SAME:
        methods: list[Value] = [Bound(option, attr) for option in base.options]
        return _call_one_of(machine, methods, args, node, attr)
    if isinstance(base, (Layer, Chain, Listed, Loss, Either)):
        return _method_of_module(machine, base, attr, args, node)
    if isinstance(base, (Seq, Map)):
        return collections.call_collection(machine, base, attr, args, node)
    if attr == "scale" and len(args.positional) == 1 and isinstance(args.positional[0], Flow):
        return args.positional[0]
    if attr in ("prepare", "setup") and args.positional:
        return args.positional[0] if len(args.positional) == 1 else Seq(list(args.positional))
    put_on = base.attrs.get(attr) if isinstance(base, Unknown) else None
    if isinstance(put_on, (Layer, Chain, Instance, Loss)):
        return call(machine, put_on, args, node, attr)
    if isinstance(base, Unknown) and (attr in torch.MODULE_SAME or attr in torch.SHAPING):
        return base
    if isinstance(base, Weights):
        if base.raw and attr.endswith("_"):
            log_write(machine, base, node)
        return derived(machine, Op(attr, machine.at(node)), [base, *args.all()])
    if isinstance(base, Unknown) and _STORES.match(attr):
        fill_up(base, args.positional[0] if args.positional else NONE)
        _store(base, args)
    if isinstance(base, Unknown) and attr in torch.OF_TENSORS_ONLY and words.SETTINGS.search(base.path):
        base = shadowed("<tensor>")  # and no setting, by whatever name
    return out_of_sight(machine, base, attr, args, node)


def _store(base: Unknown, args: Arguments) -> None:
    """`buffer.append((state, action))`: what comes out of it later may bring the graphs that were put in."""
    if any(flow.grad is not False for value in args.all() for flow in flows_in(value)):
        base.holds = (SHADOW,)


def _is_number(func: ast.expr) -> bool:
    """`loss.item().backward`: whatever the loss is, this is a number."""
    taken = func.value if isinstance(func, ast.Attribute) else None
    return (
        isinstance(taken, ast.Call)
        and isinstance(taken.func, ast.Attribute)
        and taken.func.attr == "item"
        and not taken.args
    )


def log_write(machine: Machine, weights: Weights, node: ast.AST) -> None:
    """`p.data.mul_(0.9)`, `p.data = q`."""
    uses = len(machine.log.uses)
    machine.log.writes.append(Write(machine.at(node), ".data", uses, machine.ids, weights.owners))


def _method_of_module(machine: Machine, base: Value, attr: str, args: Arguments, node: ast.Call) -> Value:
    if attr in torch.MODULE_SAME:
        return base
    if attr in ("parameters", "named_parameters"):
        return weights_of(base)
    if attr == "forward":
        return call(machine, base, args, node, attr)
    if attr in ("append", "add_module", "extend") and isinstance(base, (Chain, Listed)):
        given = args.positional[-1] if args.positional else NONE
        added = given.items if isinstance(given, Seq) else [given]
        base.parts += [collections.perhaps(machine, part) for part in added]
    return Unknown(f"<module>.{attr}()")


def _method_of_instance(
    machine: Machine, base: Instance, attr: str, args: Arguments, node: ast.Call
) -> Value:
    found = base.attrs.get(attr) or base.cls.find(attr)
    if isinstance(found, Func) and attr not in base.attrs:
        bound = None if any(name.endswith("staticmethod") for name in found.decorators) else base
        return call_function(
            machine, Func(found.node, found.frame, found.qualname, bound, found.decorators), args, node
        )
    if found is not None:
        return call(machine, found, args, node, attr)
    if attr == "__call__":
        return _call_instance(machine, base, args, node)
    if attr in _BACKWARDS:
        run_backward(machine, args.get(0, "loss") or NONE, args, node)
        return NONE
    if attr in ("add_module", "append"):
        add_below(base, args)
    if attr == "add_module" and len(args.positional) == 2 and isinstance(args.positional[0], Const):
        base.attrs[str(args.positional[0].value)] = args.positional[1]
        return NONE
    if attr == "register_buffer" and len(args.positional) > 1 and isinstance(args.positional[0], Const):
        base.attrs[str(args.positional[0].value)] = args.positional[1]
        return NONE
    if is_module(base.cls):
        if attr in torch.MODULE_SAME:
            return base
        if attr in ("parameters", "named_parameters"):
            return weights_of(base)
    return out_of_sight(machine, Unknown(base.name), attr, args, node)


def _asked_for(name: str, args: Arguments) -> re.Pattern[str] | None:
    """What a module must speak of: what becomes of a loss or a model is seen where it is handed to, whatever
    that is about; what makes either speaks of it."""
    if any(isinstance(value, (Chain, Either, Instance, Loss)) for value in args.all()):
        return None
    return None if _AVERAGES.search(name) else ENDS_OR_JUDGES  # what a meter is given, it may keep


def _library(machine: Machine, name: str, args: Arguments, node: ast.Call) -> Value:
    last = name.rsplit(".", 1)[-1]
    if last in _APPLIES and name.startswith("torch.") and len(args.positional) > _APPLIES[last]:
        module, given = args.positional[0], args.positional[_APPLIES[last]]
        handed = Arguments(given.items if isinstance(given, Seq) else [given])
        return call(machine, module, handed, node, last)
    if name == "torch.utils.data.DataLoader" and not args.partial:
        loader = loaded(args, lambda func, given: call(machine, func, given, node, last))
        return loader or Unknown(f"{name}()")
    if name.startswith("torch."):
        return call_torch(machine, name, args, node)
    if name == "builtins.getattr" and len(args.positional) == 2 and isinstance(args.positional[0], Lib):
        return named_in(args.positional[0].name, args.positional[1])
    if name in ("builtins.setattr", "builtins.delattr"):
        return call_on_attributes(machine, name, args) or NONE
    if name == "builtins.isinstance" and len(args.positional) == 2:
        known = is_kind(*args.positional)
        return Unknown("isinstance()") if known is None else Const(known)
    if name == "builtins.zip":
        return zipped(args)
    if name == "builtins.next" and args.positional and isinstance(args.positional[0], (Unknown, Weights)):
        return args.positional[0] if isinstance(args.positional[0], Weights) else item_of(args.positional[0])
    if name.startswith("builtins."):
        return collections.call_builtin(machine, last, args, node)
    _bring_together(machine, name, args, node)
    if not name.startswith(_NOT_THE_PROJECT):
        found = imported(machine, name, about=_asked_for(last, args))
        # What a package passes on from elsewhere may lead back to the name itself; torch never does.
        if found is not None and (not isinstance(found, Lib) or found.name.startswith("torch.")):
            return call(machine, found, args, node, last)
    if last in _BARS and args.positional:
        return args.positional[0]
    if name.startswith("einops.") and last in _REARRANGES and args.positional:
        given = as_tensor(args.positional[0])
        return reshaped(given) if isinstance(given, Flow) else made_of(f"{name}()", given)
    if last == "OrderedDict":
        return collections.ordered(args)
    if name.startswith("torchvision.models."):
        return Unknown(f"{name}()")
    if name == "collections.defaultdict":
        return collections.of_lists(args)
    if name == "collections.namedtuple":
        return collections.named_tuple(machine, args) or Unknown("namedtuple()")
    if name == "functools.partial" and args.positional:
        return Partial(args.positional[0], args.positional[1:], args.keywords)
    if name.startswith(("numpy.", "math.")):
        flows = [flow for value in args.all() for flow in flows_in(value)]
        if not flows:
            padded = (
                padding_of(args.positional[0]) if last in ("array", "asarray") and args.positional else None
            )
            return Flow(grad=False, form="array", padded=padded)
        lost = next((flow for flow in flows if flow.cut is not None), flows[0])
        return cut_off(lost, CutKind.NUMPY, machine.at(node), form="array") if lost.grad else lost
    if last == "deepcopy" and args.positional:
        return duplicated(machine, args.positional[0], {})
    if last in torch.WRAPPING and args.positional and not isinstance(args.positional[0], Flow):
        return args.positional[0]
    layer = layer_of_library(machine, name, args, node)
    return layer or out_of_sight(machine, Unknown(name), last, args, node)


def _bring_together(machine: Machine, name: str, args: Arguments, node: ast.Call) -> None:
    """What a library does for every batch that is given a model and a loss."""
    handed = handed_together(name, args)
    if handed is None:
        return
    model, loss = handed
    if isinstance(model, ClassDef):
        model = instantiate(machine, model, Arguments(partial=True), node)
    batch = Flow(grad=False, batched=True)
    output = call(machine, model, Arguments([batch]), node, "forward")
    chosen = next((item.value for item in node.keywords if item.arg in LOSS_KEYWORDS), node)
    call_loss(machine, loss, Arguments([output, Flow(grad=False)]), machine.at(chosen))


def _through(machine: Machine, module: Value, args: Arguments, node: ast.Call) -> Value:
    value = as_tensor(args.get(0, "input") or NONE)
    if isinstance(module, Chain):
        for part in module.parts:
            value = call(machine, part, Arguments([value]), node, "layer")
        return value
    assert isinstance(module, Layer)
    if not module.op:
        return lost(value) if module.hooked else value
    op = Op(module.op, module.where, dim=module.dim, implicit_dim=module.implicit_dim)
    owners = frozenset({module.id}) if module.trainable else frozenset()
    result = derived(machine, op, args.all() or [value], owners=owners)
    if module.returns == "state":
        return Seq([result, Seq([result, result])])
    return Seq([result, result]) if module.returns == "pair" else result


def _call_instance(machine: Machine, instance: Instance, args: Arguments, node: ast.Call) -> Value:
    if "forward" in instance.attrs:
        return call(machine, instance.attrs["forward"], args, node, "forward")
    for name in ("__call__", "forward"):
        method = instance.cls.find(name)
        if isinstance(method, Func):
            result = call_function(machine, method.of(instance), args, node)
            return lost(result) if is_changed(instance) else result
    core = below(instance)
    if core is not None:
        return call(machine, core, args, node, "forward")
    return out_of_sight(machine, shadowed(instance.name), "forward", args, node)


def call_super(machine: Machine, attr: str, args: Arguments, node: ast.Call) -> Value:
    owner = machine.frame.owner
    if isinstance(owner, Func) and isinstance(owner.bound, Instance):
        for base in owner.bound.cls.bases:
            found = base.find(attr) if isinstance(base, ClassDef) else None
            if isinstance(found, Func) and found.node is not owner.node:
                return call_function(
                    machine, Func(found.node, found.frame, found.qualname, owner.bound), args, node
                )
        core = below(owner.bound)
        if attr == "__init__":
            build_below(owner.bound, args)
        elif core is not None and attr in ("forward", "__call__"):
            return call(machine, core, args, node, attr)
        if attr != "__init__":
            return out_of_sight(machine, shadowed(f"super({owner.bound.name})"), attr, args, node)
    return Unknown(f"super().{attr}()")

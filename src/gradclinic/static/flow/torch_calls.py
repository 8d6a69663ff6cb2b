"""Functions of torch, and methods of tensors."""

from __future__ import annotations

import ast
from dataclasses import replace

from gradclinic.facts import CutKind, DomainEdge, Location, Op
from gradclinic.static.flow import torch_names as torch
from gradclinic.static.flow.creating import (
    alike,
    created,
    filled,
    is_size,
    is_true,
    padded,
    that_are_there,
)
from gradclinic.static.flow.losses import call_loss
from gradclinic.static.flow.machine import Machine, Use
from gradclinic.static.flow.padding import padding_of
from gradclinic.static.flow.tensors import (
    binary,
    chosen_from,
    concatenated,
    copied,
    copy_of,
    cut_off,
    derived,
    new_leaf,
    overwritten,
    owner_in,
    product,
    reshaped,
)
from gradclinic.static.flow.values import (
    NO_IDS,
    NOTHING,
    STEPS,
    Alike,
    Chain,
    Flow,
    Ids,
    Layer,
    Listed,
    Loss,
    Weights,
    as_tensor,
    changed,
    flows_in,
)
from gradclinic.static.flow.weights_given import given_whole
from gradclinic.static.values import NONE, Const, Instance, Map, Seq, Unknown, Value
from gradclinic.static.walk import Arguments

_SQUASHING = frozenset({"softmax", "sigmoid"})
_LOGARITHMS = frozenset({"log", "log2", "log10"})
_ARITHMETIC: dict[str, ast.operator] = {
    "add": ast.Add(), "sub": ast.Sub(), "mul": ast.Mult(), "div": ast.Div(), "add_": ast.Add(),
    "mul_": ast.Mult(), "div_": ast.Div(), "sub_": ast.Sub(), "pow": ast.Pow(),
}  # fmt: skip


_IN_PLACE = frozenset({"add_", "sub_", "mul_", "div_", "clamp_", "masked_fill_", "fill_", "zero_", "copy_"})

_MACHINERY = frozenset({"GradScaler", "Generator", "Stream", "Event", "device"})
"""Things of torch that are no tensors."""
_MADE_OF_SIZES = torch.LAYERS.keys() | torch.RETURNS.keys() | torch.WEIGHTLESS


def call_torch(machine: Machine, name: str, args: Arguments, node: ast.Call) -> Value:
    last = name.rsplit(".", 1)[-1]
    where = machine.at(node)
    first = as_tensor(args.positional[0] if args.positional else args.keywords.get("input", NONE))
    if last in torch.LOSSES:
        return Loss(torch.LOSSES[last], dict(args.keywords), where)
    if last in torch.LOSS_FUNCTIONS:
        return call_loss(machine, Loss(last), args, where)
    if last in torch.WRAPPING and not isinstance(first, (Flow, Const)):
        return first
    if name == "torch.autograd.backward":
        run_backward(machine, args.get(0, "tensors") or NONE, args, node)
        return NONE
    if name == "torch.autograd.grad":
        return _gradient(machine, args, node)
    if name == "torch.autograd.set_detect_anomaly":
        switch_anomaly(machine, args, where)
        machine.log.switched += [where] if machine.anomaly is not None else []
        return NONE
    if last in ("Parameter", "Buffer"):
        return _parameter(machine, last)
    if ".optim." in name:
        for value in args.all():
            machine.log.optimized |= _weights_in(value)
        trained = args.get(0, "params")
        for held in trained.items if isinstance(trained, Seq) else [trained]:
            if isinstance(held, Unknown):
                machine.log.trained.add(owner_in(held.path))
        whole = bool(node.args) and given_whole(node.args[0])
        changes = _weights_in(trained) if whole and trained is not None else NO_IDS
        return Unknown(f"{name}()", {STEPS: Weights(changes)} if changes else {})
    if last in _MACHINERY:
        return Unknown(f"{name}()")
    if last == "pad_sequence":
        return padded(args, node)
    if ".data." in name or (".utils." in name and last != "checkpoint"):
        return Unknown(f"{name}()")
    if _is_class(name, last):
        return _layer(machine, last, args, where)
    row = None if isinstance(first, Flow) else padding_of(first)
    if row is not None and (last in torch.COPYING or last in ("as_tensor", "asarray")):
        return Flow(grad=False, padded=row)
    if last in torch.COPYING and args.positional and not is_size(args):
        made = copied(machine, first, where, leaf=is_true(args.keywords.get("requires_grad")))
        none = node.args and isinstance(node.args[0], ast.List) and not node.args[0].elts
        made = changed(made, filled=NOTHING) if none else made
        return changed(made, scalar=True) if isinstance(first, Const) else made
    if last in ("from_numpy", "as_tensor", "asarray") and flows_in(first):
        lost = flows_in(first)[0]
        return changed(lost, form="tensor") if lost.form != "tensor" else lost
    if last in torch.CREATING and not last.endswith("_like"):
        return changed(created(args, blank=last in torch.BLANK), filled=filled(last, args))
    if last.endswith("_like"):
        return Flow(grad=False, blank=last in torch.BLANK)
    if last in ("stack", "cat", "hstack", "vstack", "concat", "concatenate"):
        first = that_are_there(first) if last != "stack" else first
        return changed(concatenated(machine, Op(last, where), first), ops=alike(first), reshaped=True)
    if last == "checkpoint":
        return derived(machine, Op(last, where), args.positional[1:], owners=frozenset({machine.new_id()}))
    if last == "Variable" and isinstance(first, Flow) and is_true(args.keywords.get("requires_grad")):
        # One that has a graph loses it, as all that are wrapped; of a loss that is surely not meant.
        of_loss = first.losses if first.grad is None else first.grad and (first.losses or first.scalar)
        return new_leaf(cut_off(first, CutKind.VARIABLE, where) if of_loss else changed(first))
    if isinstance(first, Flow):
        return call_tensor(
            machine, first, last, Arguments(args.positional[1:], args.keywords, args.partial), node
        )
    return derived(machine, _op(last, args, where, skip=1), args.all())


def _is_class(name: str, last: str) -> bool:
    return last[:1].isupper() and ("nn." in name or "distributions" in name) and last != "Variable"


def _parameter(machine: Machine, last: str) -> Value:
    if last == "Buffer":
        return Flow(grad=False)
    owner = frozenset({machine.new_id()})
    return Flow(owners=owner, grad=None if machine.freezes else True)


def _layer(machine: Machine, last: str, args: Arguments, where: Location) -> Value:
    if last == "Sequential":
        return chain_of(args)
    if last in torch.CONTAINERS:
        first = args.positional[0] if args.positional else NONE
        items = first.items if isinstance(first, (Seq, Map)) else []
        return Listed(list(items.values() if isinstance(items, dict) else items))
    # A distribution is made of tensors; a layer is not, though its width may have been computed.
    if last not in _MADE_OF_SIZES and any(flows_in(value) for value in args.all()):
        return derived(machine, Op(last, where), args.all())
    op = torch.LAYERS.get(last, "" if last in torch.SHAPE_LAYERS else last.lower())
    dim = args.get(0, "dim")
    normalises = op in ("softmax", "log_softmax")
    id, trainable = machine.new_id(), last not in torch.WEIGHTLESS
    if trainable:
        machine.log.layers[id] = f"the {last} of line {where.line}"
    return Layer(
        op,
        id,
        trainable=trainable,
        returns=torch.RETURNS.get(last, ""),
        dim=_integer(dim) if normalises and last != "Softmax2d" else None,
        implicit_dim=normalises and dim is None and last != "Softmax2d" and not args.partial,
        where=where,
    )


def chain_of(args: Arguments) -> Value:
    parts: list[Value] = []
    for value in args.positional:
        parts += value.items.values() if isinstance(value, Map) else [value]
    if args.partial:
        # What was spread into it is not known, nor what comes last.
        return Chain([Unknown("<layers>")]) if not args.positional else Chain([Unknown("<layers>"), *parts])
    return Chain(parts)


def _integer(value: Value | None) -> int | None:
    return value.value if isinstance(value, Const) and type(value.value) is int else None


def _op(name: str, args: Arguments, where: Location, *, skip: int) -> Op:
    if name not in ("softmax", "log_softmax"):
        return Op(name, where)
    dim = args.get(skip, "dim")
    return Op(name, where, dim=_integer(dim), implicit_dim=dim is None and not args.partial)


def _gradient(machine: Machine, args: Arguments, node: ast.Call) -> Value:
    outputs = args.get(0, "outputs") or NONE
    create = args.keywords.get("create_graph")
    where = machine.at(node)
    filled = "materialize_grads" in args.keywords or args.partial
    unchecked = where if is_true(args.keywords.get("allow_unused")) and not filled else None
    run = derived(machine, Op("grad", where), [outputs])
    retain = args.keywords.get("retain_graph", create)
    log_use(machine, run, retain, node, whole=False)
    if create is not None and not (isinstance(create, Const) and not create.value):
        return Alike([changed(derived(machine, Op("grad", where), [outputs]), unchecked=unchecked)])
    return Alike([changed(cut_off(changed(run, scalar=False), CutKind.GRAD, where), unchecked=unchecked)])


def log_use(
    machine: Machine, flow: Flow, retain: Value | None, node: ast.Call, *, whole: bool = True
) -> None:
    known = retain.value if isinstance(retain, Const) else None
    kept = False if retain is None else None if known is None else bool(known)
    anomaly = machine.anomaly
    under = anomaly[0] if anomaly and machine.branch[: len(anomaly[1])] == anomaly[1] else None
    log = machine.log
    log.uses.append(Use(machine.at(node), node, flow, kept, machine.branch, whole, under, log.root))


def switch_anomaly(machine: Machine, args: Arguments, where: Location) -> None:
    """On when it is surely on, off when it may be off."""
    machine.anomaly = (where, machine.branch) if is_true(args.get(0, "mode")) else None


def run_backward(machine: Machine, loss: Value, args: Arguments, node: ast.Call) -> None:
    retain = args.keywords.get("retain_graph") or args.keywords.get("retain_variables")
    retain = retain or args.keywords.get("create_graph")
    if args.partial and retain is None:
        retain = Unknown("**")
    flows = flows_in(loss)
    if isinstance(loss, Flow):
        log_use(machine, loss, retain, node)
    else:
        joined = derived(machine, None, flows) if flows else Flow()
        seen = {"known": joined.known, "anew": joined.anew} if flows else {"known": False, "anew": False}
        log_use(machine, changed(joined, **seen), retain, node)


def call_tensor(machine: Machine, flow: Flow, name: str, args: Arguments, node: ast.Call) -> Value:
    where = machine.at(node)
    if flow.unchecked is not None:
        machine.log.unchecked.setdefault(flow.unchecked, where)
        flow = changed(flow, unchecked=None)
    if name == "backward":
        run_backward(machine, flow, args, node)
        return NONE
    if name.endswith("_") and name in _IN_PLACE:
        overwritten(machine, flow, where, name)
    if name in ("item", "tolist"):
        return cut_off(flow, CutKind.ITEM, where, form="number")
    if name == "numpy":
        return cut_off(flow, CutKind.NUMPY, where, form="array")
    if name in ("detach", "detach_"):
        return cut_off(flow, CutKind.DETACH, where)
    if name == "requires_grad_":
        return new_leaf(flow) if not args.all() or is_true(args.all()[0]) else flow
    if name == "sample":
        return Flow(grad=False)
    if name in torch.UNCHANGED:
        return copy_of(flow) if name in torch.MAY_COPY else flow
    if name in torch.SHAPING:
        return reshaped_by(flow, name, args)
    if name in ("long", "int") and flow.grad is False:
        return flow
    if name in ("argmax", "argmin"):
        return chosen_from(flow, where)
    if name in torch.PLAIN or name in torch.BLANK:
        return Flow(grad=False, axes=None, blank=name in torch.BLANK)
    if name in _ARITHMETIC and args.positional:
        return binary(machine, node, flow, _ARITHMETIC[name], args.positional[0])
    if name in ("matmul", "bmm", "mm") and args.positional:
        return product(machine, where, flow, args.positional[0], axes=3 if name == "bmm" else None)
    if name in ("max", "min") and args.all() and not isinstance(args.all()[0], Flow):
        return Seq([reshaped(derived(machine, Op(name, where), [flow])), chosen_from(flow, where)])
    result = derived(machine, _op(name, args, where, skip=0), [flow, *args.all()])
    if name in _LOGARITHMS:
        _look_at_logarithm(machine, name, flow, result, where)
    if name == "exp" and flow.ops and flow.ops[0].name == "log_softmax" and not flow.reshaped:
        return changed(result, ops=(replace(flow.ops[0], name="softmax"), *flow.ops[1:]))
    if name in torch.REDUCING:
        whole = not args.positional and "dim" not in args.keywords and "axis" not in args.keywords
        return changed(
            result, scalar=whole, terms=flow.terms, losses=flow.losses, axes=None, batched=False,
            divided=flow.divided or (name == "mean" and not flow.scalar),
        )  # fmt: skip
    return result


def _look_at_logarithm(machine: Machine, name: str, flow: Flow, result: Flow, where: Location) -> None:
    """The log of a probability that can be exactly zero."""
    if flow.ops and flow.ops[0].name in _SQUASHING and result.grad and not machine.no_grad:
        edge = DomainEdge(name, where, flow.ops[0].name, met=False)
        machine.log.edges.append((edge, machine.ids))


def reshaped_by(flow: Flow, name: str, args: Arguments) -> Value:
    if name == "masked_select":
        return reshaped(flow, padded=None)
    if name in ("chunk", "split", "unbind"):
        return Alike([reshaped(flow)])
    if name == "contiguous":
        return copy_of(flow)
    if name == "flatten" and args.positional and _integer(args.positional[0]) == 1:
        return changed(flow, axes=2, batched=flow.batched)
    if name in ("view", "reshape") and len(args.positional) == 2 and _keeps_batch(flow, args.positional):
        return changed(flow, axes=2)
    return changed(reshaped(flow), batched=_has_rows(flow, name, args))


def _has_rows(flow: Flow, name: str, args: Arguments) -> bool:
    """Whether the first axis is that of the samples after it: `x.view(-1, 1024)`, `x.transpose(1, 2)`."""
    given = [_integer(value) for value in args.positional]
    if name in ("view", "reshape"):
        return len(given) > 1 and given[0] == -1
    if name in ("transpose", "swapaxes", "squeeze", "unsqueeze", "permute"):
        numbers = given[1:] if name == "permute" and given[:1] == [0] else given
        return flow.batched and bool(numbers) and all(number is not None and number > 0 for number in numbers)
    return False


def _keeps_batch(flow: Flow, extents: list[Value]) -> bool:
    """`x.view(x.size(0), -1)`."""
    return flow.batched and isinstance(extents[0], (Unknown, Flow)) and _integer(extents[1]) == -1


def _weights_in(value: Value) -> Ids:
    """The layers an optimizer is given; a plain tensor among them is one that requires a gradient."""
    if isinstance(value, Flow):
        return new_leaf(value).owners
    if isinstance(value, Weights):
        return value.owners
    if isinstance(value, Seq):
        return NO_IDS.union(*(_weights_in(item) for item in value.items))
    if isinstance(value, Map):
        return NO_IDS.union(*(_weights_in(item) for item in value.items.values()))
    return NO_IDS


def weights_of(value: Value) -> Weights:
    """The parameters of a module, by the layers that own them."""
    found: set[int] = set()
    _collect(value, found, 5)
    return Weights(frozenset(found))


def _collect(value: Value, found: set[int], depth: int) -> None:
    if isinstance(value, Layer):
        if value.trainable:
            found.add(value.id)
    elif isinstance(value, Flow):
        found |= value.owners
    elif not depth:
        return
    elif isinstance(value, (Chain, Listed)):
        for part in value.parts:
            _collect(part, found, depth - 1)
    elif isinstance(value, Instance):
        for part in list(value.attrs.values()):
            _collect(part, found, depth - 1)


def duplicated(machine: Machine, value: Value, copies: dict[int, Value]) -> Value:
    """A module made anew: the parameters of a copy are its own."""
    if id(value) in copies:
        return copies[id(value)]
    made = value
    if isinstance(value, Layer):
        made = replace(value, id=machine.new_id())
    elif isinstance(value, (Chain, Listed)):
        made = type(value)([duplicated(machine, part, copies) for part in value.parts])
    elif isinstance(value, Instance):
        made = copies[id(value)] = Instance(value.cls, value.name)
        made.attrs = {name: duplicated(machine, part, copies) for name, part in value.attrs.items()}
    copies[id(value)] = made
    return made

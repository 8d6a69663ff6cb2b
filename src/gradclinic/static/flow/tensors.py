"""Operations on abstract tensors: what becomes of the trail, the graph, and the cuts in it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from dataclasses import replace

from gradclinic.facts import CutKind, Location, Op, SoftmaxUse
from gradclinic.static import words
from gradclinic.static.flow.machine import Machine, Write
from gradclinic.static.flow.torch_names import SAVES_RESULT, WEIGHS
from gradclinic.static.flow.values import (
    MOST_OPS,
    NO_IDS,
    CutAt,
    Flow,
    Ids,
    Weights,
    carries,
    changed,
    flows_in,
    shade_of,
    shadowed,
    shared_ops,
)
from gradclinic.static.values import Const, Lib, Seq, Unknown, Value


def derived(
    machine: Machine, op: Op | None, inputs: Sequence[Value], *, owners: Ids = NO_IDS, combined: bool = False
) -> Flow:
    """The result of `op` on `inputs`, computed with the parameters of `owners`.

    `combined`: the inputs are alike, as in a stack, and the trail is theirs.
    """
    flows: list[Flow] = []
    for value in inputs:
        if type(value) is Flow:
            flows.append(value)
        elif isinstance(value, Weights):
            owners = owners if value.raw else owners | value.owners
        else:
            flows += flows_in(value)
    for flow in flows:
        if flow.unchecked is not None and op is not None and op.where is not None:
            machine.log.unchecked.setdefault(flow.unchecked, op.where)
    trail: tuple[Op, ...] = ()
    if flows:
        trail = shared_ops(flows) if combined else flows[0].ops
    if op is not None:
        trail = (op, *trail)[:MOST_OPS]
    first = flows[0] if flows else Flow()
    shape = {"axes": first.axes, "batched": first.batched}
    if machine.no_grad:
        return Flow(trail, grad=False, cut=_switched_off(machine, flows, owners), **shape)  # type: ignore[arg-type]
    grad = _carries_graph(machine, flows, owners, inputs)
    cuts = tuple(flow.cut for flow in flows if flow.cut is not None)
    if grad is False:
        return Flow(trail, grad=False, cut=cuts[0] if cuts else None, **shape)  # type: ignore[arg-type]
    live = [flow for flow in flows if flow.grad is not False]
    unseen = [shade for shade in (shade_of([value]) for value in inputs if out_of_sight(value)) if shade]
    node = machine.new_id()
    if owners:
        machine.log.layered[node] = owners
        if op is not None and op.name in WEIGHS and any(flow.grad and flow.certain for flow in flows):
            machine.log.needing[node] = owners
    # Whatever is made of a new leaf alone, a backward from it reaches nothing else.
    silenced = live and not owners and not unseen and all(flow.cut and flow.cut.silenced for flow in live)
    return Flow(
        trail,
        nodes=frozenset({node}).union(*(flow.nodes for flow in (*live, *unseen))),
        owners=owners.union(*(flow.owners for flow in live)),
        grad=grad,
        known=all(flow.known for flow in live) and not unseen,
        anew=all(flow.anew for flow in (*live, *unseen)),
        certain=all(flow.certain for flow in live),
        cut=live[0].cut if silenced else None,
        spared=any(flow.spared for flow in live),
        # Past a layer, the layers behind a cut have no other way; in a sum or product they may not need one.
        paths=tuple(
            dict.fromkeys((*(cuts if owners else ()), *(path for flow in flows for path in flow.paths)))
        ),
        **shape,  # type: ignore[arg-type]
    )


def out_of_sight(value: Value) -> bool:
    return not isinstance(value, Flow) and carries(value)


def _carries_graph(machine: Machine, flows: list[Flow], owners: Ids, inputs: Sequence[Value]) -> bool | None:
    unsure = bool(machine.perhaps_no_grad)
    if any(flow.grad for flow in flows) or (owners and not machine.freezes):
        return None if unsure else True
    if owners or any(flow.grad is None for flow in flows):
        return None
    return None if any(out_of_sight(value) or _is_anothers(value) for value in inputs) else False


def _is_anothers(value: Value) -> bool:
    """Whether another module made it, or one of its functions: it may be a parameter as well as a number."""
    name = value.name if isinstance(value, Lib) else value.path if isinstance(value, Unknown) else ""
    module, dot, _ = name.partition(".")
    called = isinstance(value, Lib) or "()" in name
    return bool(dot) and called and module not in _NO_PARAMETERS and not _DATA.search(name)


_NO_PARAMETERS = sys.stdlib_module_names | {"builtins", "torch", "numpy", "self", "cls"}
_DATA = words.Pattern(r"load|data|batch|sampl|label|target|mask|args|config|cfg|settings|env\b", re.I)
"""What brings no parameter: of a loader, or of a command line."""


def _switched_off(machine: Machine, flows: list[Flow], owners: Ids) -> CutAt | None:
    for flow in flows:
        if flow.cut is not None:
            return flow.cut
    lost = [flow for flow in flows if flow.grad]
    if not lost and (not owners or machine.freezes):
        return None
    return CutAt(
        CutKind.NO_GRAD,
        machine.no_grad[0],
        NO_IDS.union(*(flow.nodes for flow in lost)),
        owners.union(*(flow.owners for flow in lost)),
        scalar=False,
    )


def cut_off(flow: Flow, kind: CutKind, where: Location, *, form: str = "tensor") -> Flow:
    """The same values without the graph."""
    # What is chosen is data for whatever comes next; only a loss of it is worth telling.
    cut = flow.cut if flow.cut is None or flow.cut.kind is not CutKind.CHOICE else None
    # `loss.detach().item()` is a number, whatever came first.
    furthermore = kind is CutKind.NUMPY or (kind is CutKind.ITEM and cut and cut.kind is CutKind.DETACH)
    if flow.grad is not False or (cut is not None and furthermore):
        # Of what has no graph, torch gives no gradient at all.
        sure = flow.grad is True or kind is CutKind.GRAD
        behind = cut or CutAt(
            kind,
            where,
            flow.nodes,
            flow.owners,
            flow.scalar,
            sure=sure,
            of_loss=any(id > 0 for id in flow.losses),
        )
        cut = replace(behind, kind=kind, where=where)
    return Flow(
        flow.ops, grad=False, cut=cut, scalar=flow.scalar, form=form, axes=flow.axes, batched=flow.batched,
        padded=flow.padded, reshaped=flow.reshaped,
    )  # fmt: skip


def chosen_from(flow: Flow, where: Location) -> Flow:
    """Where the largest value stands."""
    sure = flow.grad is True
    cut = CutAt(CutKind.CHOICE, where, flow.nodes, flow.owners, scalar=False) if sure else None
    return Flow(grad=False, cut=cut)


def copied(machine: Machine, source: Value, where: Location, *, leaf: bool) -> Flow:
    """`torch.tensor(x)`: a new leaf whatever x was."""
    flows = flows_in(source)
    lost = next((flow for flow in flows if flow.grad and flow.form == "tensor"), None)
    # Whatever a loss was given: a backward from a leaf that is made of it reaches nothing.
    lost = lost or next((changed(flow, grad=None, cut=None) for flow in flows if leaf and flow.losses), None)
    if lost is not None:
        made = cut_off(lost, CutKind.TENSOR, where)
    else:
        earlier = next((flow for flow in flows if flow.cut is not None), None)
        made = cut_off(earlier or Flow(grad=False), CutKind.TENSOR, where)
    made = changed(made, ops=made.ops if isinstance(source, Flow) else (), form="tensor")
    return new_leaf(made) if leaf else made


def new_leaf(flow: Flow) -> Flow:
    """`requires_grad_()`: backward will run from here, and reach nothing behind it.

    It changes the tensor itself, whoever else holds it.
    """
    if flow.grad is False:
        flow.grad = True
        cut = flow.cut
        of_loss = cut is not None and (cut.scalar or bool(flow.losses))
        flow.cut = replace(cut, silenced=True) if cut is not None and of_loss else None
        if cut is not None and not of_loss:
            flow.paths = (*flow.paths, cut)
    return flow


def reshaped(flow: Flow, **changes: object) -> Flow:
    return changed(flow, reshaped=True, axes=None, batched=False, **changes)


def overwritten(machine: Machine, flow: Flow, where: Location, how: str) -> bool:
    """An in-place write to what some operation returned: whether its backward needs what was there."""
    made = flow.ops[0] if flow.ops else None
    if made is None or made.name not in SAVES_RESULT or flow.reshaped or flow.form != "tensor":
        return False
    if not (flow.grad and flow.certain and flow.nodes) or flow.copied:
        return False
    node = max(flow.nodes)
    machine.log.spoiled[node] = Write(where, how, len(machine.log.uses), node, needed=made.where)
    return True


def copy_of(flow: Flow) -> Flow:
    """The same, or a copy of it."""
    saved = bool(flow.ops) and flow.ops[0].name in SAVES_RESULT
    return changed(flow, copied=True) if saved else flow


def summed(machine: Machine, where: Location, one: Value, other: Value) -> Flow:
    """`a + b`: a summand without a graph is remembered."""
    result = derived(machine, Op("add", where), [one, other])
    flows = [value for value in (one, other) if isinstance(value, Flow)]
    terms = [term for flow in flows for term in flow.terms]
    if result.grad is not False:
        terms += [flow.cut for flow in flows if flow.cut is not None and flow.grad is False]
    return changed(
        result,
        terms=tuple(dict.fromkeys(terms)),
        scalar=all(_is_scalar(value) for value in (one, other)),
        losses=NO_IDS.union(*(flow.losses for flow in flows)),
        divided=any(flow.divided for flow in flows),
    )


def scaled(machine: Machine, where: Location, name: str, flow: Flow, factor: Value) -> Flow:
    """`k * loss`, `loss / k`, `-loss`."""
    if isinstance(factor, Unknown) and _is_setting(machine, factor.path):
        # What a configuration says is a number, behind which there is no graph.
        factor = Unknown(factor.path)
    result = derived(machine, Op(name, where), [flow, factor])
    alone = not isinstance(factor, Flow) or factor.grad is False
    number = isinstance(factor, Const)
    return changed(
        result,
        terms=flow.terms if alone else (),
        cut=result.cut if alone else None,
        scalar=flow.scalar and _is_scalar(factor),
        losses=flow.losses if alone else NO_IDS,
        divided=flow.divided or not number or (name == "div" and not number),
    )


def owner_in(path: str) -> str:
    """`params` of `self.params["alpha"]` and of `params.values()`."""
    return re.split(r"[.\[(]", path.removeprefix("self."), maxsplit=1)[0]


def _is_setting(machine: Machine, path: str) -> bool:
    """What is optimized is no number of a configuration."""
    return words.SETTINGS.search(path) is not None and owner_in(path) not in machine.log.trained


def _is_scalar(value: Value) -> bool:
    return isinstance(value, (Const, Unknown)) or (isinstance(value, Flow) and value.scalar)


def binary(machine: Machine, node: ast.AST, left: Value, op: ast.operator, right: Value) -> Value:
    where = machine.at(node)
    if isinstance(op, (ast.Add, ast.Sub)):
        lost = right.cut if isinstance(op, ast.Sub) and isinstance(right, Flow) else None
        if lost is not None and lost.of_loss and isinstance(right, Flow) and lost.nodes == right.losses:
            right = changed(right, cut=None)  # a loss of plain data that is subtracted is a baseline
        return summed(machine, where, left, right)
    name = _NAMES.get(type(op), type(op).__name__.lower())
    if isinstance(op, (ast.Mult, ast.Div)):
        if isinstance(left, Flow) and not (
            isinstance(op, ast.Mult) and isinstance(right, Flow) and right.grad and not left.grad
        ):
            return scaled(machine, where, name, left, right)
        if isinstance(right, Flow) and isinstance(op, ast.Mult):
            return scaled(machine, where, name, right, left)
    if isinstance(op, ast.MatMult):
        return product(machine, where, left, right)
    result = derived(machine, Op(name, where), [left, right])
    return changed(result, scalar=_is_scalar(left) and _is_scalar(right))


_NAMES: dict[type[ast.operator], str] = {ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow"}


_LABELS = words.Pattern(r"one_?hot\w*(\.(float|to|type)\(\))?$", re.I)


def product(machine: Machine, where: Location, left: Value, right: Value, axes: int | None = None) -> Flow:
    weights = left if isinstance(left, Flow) else Flow()
    softmax = weights.ops[0] if weights.ops else None
    # Labels that are weighted by probabilities give probabilities.
    weighted = softmax is not None and softmax.name == "softmax" and _are_labels(right)
    result = derived(machine, Op("mean" if weighted else "matmul", where), [left, right])
    known = axes or weights.axes
    if (
        softmax is not None
        and softmax.name == "softmax"
        and softmax.dim is not None
        and known is not None
        and known >= 3
        and not weights.reshaped
        and 0 < softmax.dim % known < known - 1
        and any(op.name == "matmul" for op in weights.ops[1:4])
    ):
        machine.log.softmax_uses.append(SoftmaxUse(softmax, where))
    return changed(result, axes=known)


def _are_labels(value: Value) -> bool:
    if isinstance(value, Flow):
        return bool(value.ops) and value.ops[0].name == "one_hot"
    return isinstance(value, Unknown) and _LABELS.search(value.path) is not None


def concatenated(machine: Machine, op: Op, source: Value) -> Flow:
    items = source.items if isinstance(source, Seq) else [source]
    # Of nothing there is no stack: what filled the list was not gone through.
    return derived(machine, op, items or [shadowed("<item>")], combined=True)

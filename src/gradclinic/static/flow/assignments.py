"""Assignments: what a name, an attribute or an item holds from then on."""

from __future__ import annotations

import ast

from gradclinic.static import words
from gradclinic.static.flow.calls import log_write
from gradclinic.static.flow.collections import call_collection
from gradclinic.static.flow.edits import put_attribute, put_item, take_out
from gradclinic.static.flow.expressions import combine, evaluate, truth
from gradclinic.static.flow.heads import LAST, is_last
from gradclinic.static.flow.items import key_of, spread
from gradclinic.static.flow.joining import join
from gradclinic.static.flow.machine import Kept, Machine
from gradclinic.static.flow.padding import begins_row, makes_batches, number_behind
from gradclinic.static.flow.tensors import new_leaf, overwritten, reshaped
from gradclinic.static.flow.totals import adds_to_itself, grows_at_its_end, restarted
from gradclinic.static.flow.values import NO_IDS, Alike, Flow, Weights, changed, shade_of
from gradclinic.static.values import (
    NONE,
    Const,
    Instance,
    Map,
    Seq,
    Unknown,
    Value,
)  # fmt: skip
from gradclinic.static.walk import Arguments


def run_assign(machine: Machine, node: ast.Assign) -> None:
    there = adds_to_itself(node.targets[0], node.value)
    if there and isinstance(node.value, ast.BinOp) and len(node.targets) == 1:
        left, right = evaluate(machine, node.value.left), evaluate(machine, node.value.right)
        current, added = (left, right) if there == "left" else (right, left)
        result = combine(machine, node, left, ast.Add(), right)
        _add_up(machine, node, node.targets[0], current, added, result)
        return
    value = evaluate(machine, node.value)
    if isinstance(value, Flow) and value.grad is not False and grows_at_its_end(node.targets[0], node.value):
        current, log = evaluate(machine, node.targets[0]), machine.log
        into, uses = current if isinstance(current, Flow) else Flow(), len(log.uses)
        log.piled.append(Kept(machine.at(node), value, into, 0, machine.branch, uses, log.marks))
    for target in node.targets:
        assign(machine, target, value)


def run_annotated(machine: Machine, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(machine, node.target, evaluate(machine, node.value))


def assign(machine: Machine, target: ast.expr, value: Value) -> None:
    if isinstance(value, (Flow, Unknown)) and words.LOSS_NAME.search(_called(target)):
        value = _as_loss(machine, value)
    if isinstance(target, ast.Name):
        _store(machine, target.id, value)
    elif isinstance(target, ast.Attribute):
        _store_attribute(machine, evaluate(machine, target.value), target, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part, held in zip(target.elts, spread(value, target.elts), strict=True):
            # `loss, accuracy = compute(batch)`: of what a call gives, too, one may be a loss.
            one = isinstance(value, Unknown) and words.LOSS_NAME.search(_called(part)) is not None
            assign(machine, part, _as_loss(machine, value, held) if one else held)
    elif isinstance(target, ast.Starred):
        assign(machine, target.value, value)
    elif isinstance(target, ast.Subscript):
        _store_item(machine, target, value)


def _as_loss(machine: Machine, value: Value, otherwise: Value | None = None) -> Value:
    """What is called a loss is one number; made by a call out of sight, one with a graph of its own."""
    if isinstance(value, Flow):
        own = value.losses or frozenset({-machine.new_id()})
        return value if value.known else changed(value, scalar=True, losses=own)
    if not isinstance(value, Unknown) or "()" not in value.path or value.attrs or machine.no_grad:
        return otherwise or value
    shade, own = shade_of([value]) or Flow(), frozenset({-machine.new_id()})
    machine.log.unsure |= own
    return Flow(nodes=shade.nodes | own, known=False, anew=False, scalar=True, losses=own)


def _called(target: ast.expr) -> str:
    """What the value is called from then on: `loss`, `self.loss`, `losses["loss"]`."""
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        return target.attr
    key = target.slice if isinstance(target, ast.Subscript) else None
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _store(machine: Machine, name: str, value: Value) -> None:
    frame = machine.frame
    if name in frame.shared:
        holder = frame.parent
        while holder is not None and name not in holder.vars and holder.parent is not None:
            holder = holder.parent
        if holder is not None:
            machine.let_out(value)
            holder.vars[name] = _perhaps(machine, holder.vars.get(name), value, name)
        return
    frame.vars[name] = value


def _perhaps(machine: Machine, before: Value | None, value: Value, name: str) -> Value:
    """What is seen from outside this branch: the new value or the old one."""
    return join(before, value, name) if machine.branch and before is not None else value


def _store_attribute(machine: Machine, base: Value, target: ast.Attribute, value: Value) -> None:
    if isinstance(base, Flow):
        if target.attr == "requires_grad" and truth(value) is not False:
            new_leaf(base)
    elif isinstance(base, Weights) and target.attr == "data":
        log_write(machine, base, target)
    elif isinstance(base, (Instance, Unknown)):
        machine.let_out(value)
        if isinstance(base, Unknown):
            put_attribute(machine, base, Const(target.attr), value)
        base.attrs[target.attr] = _perhaps(machine, base.attrs.get(target.attr), value, target.attr)
    else:
        put_attribute(machine, base, Const(target.attr), value)


def _store_item(machine: Machine, target: ast.Subscript, value: Value) -> None:
    base = evaluate(machine, target.value)
    index = evaluate(machine, target.slice) if not isinstance(target.slice, ast.Slice) else NONE
    machine.let_out(value)
    if isinstance(base, Map):
        key = key_of(index, None)
        if key is None:
            base.items.clear()
        else:
            base.items[key] = _perhaps(machine, base.items.get(key), value, "<item>")
    elif isinstance(base, Seq) and not isinstance(base, Alike):
        base.items[:] = [join(item, value, "<item>") for item in base.items]
    elif isinstance(base, Unknown) and is_last(base, index):
        base.attrs[LAST] = _perhaps(machine, base.attrs.get(LAST, Unknown(base.path)), value, "<item>")
    elif isinstance(base, Flow) and isinstance(target.value, ast.Name):
        _write_into(machine, target, base, value)
    else:
        put_item(machine, base, index, value)


def _write_into(machine: Machine, target: ast.Subscript, base: Flow, value: Value) -> None:
    """`tokens[row, length:] = 0` fills up a row; any other write leaves something unknown."""
    name = target.value.id  # type: ignore[attr-defined]
    if overwritten(machine, base, machine.at(target), "item assignment"):
        return
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    last = parts[-1] if parts else None
    fills = isinstance(last, ast.Slice) and last.lower is not None and last.upper is None and len(parts) > 1
    if fills and isinstance(value, Const) and type(value.value) is int and base.grad is False:
        machine.frame.vars[name] = changed(base, padded=value.value)
    elif (
        begins_row(parts)
        and makes_batches(machine.frame.qualname)
        and number_behind(base) is not None
        and isinstance(value, (Flow, Unknown))
    ):
        held = value if isinstance(value, Flow) and base.blank else join(base, value, name)
        assert isinstance(held, Flow)
        number = number_behind(base)
        machine.frame.vars[name] = reshaped(held, scalar=False, losses=NO_IDS, padded=number)
    elif base.blank and base.grad is False and isinstance(value, Flow) and value.form == "tensor":
        # Row by row it becomes what is written to it.
        machine.frame.vars[name] = reshaped(
            value, scalar=False, cut=None, terms=(), paths=(), losses=NO_IDS, padded=None
        )
    else:
        written = join(base, value if isinstance(value, Flow) else Unknown(name), name)
        # Data that numbers are written to, `degree[degree == 0] = 1`, is data as before.
        if isinstance(written, Flow) and isinstance(value, Const) and base.grad is False:
            written = changed(written, grad=False)
        machine.frame.vars[name] = written


_SPELLED: dict[type[ast.operator], str] = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}


def run_augmented(machine: Machine, node: ast.AugAssign) -> None:
    current = evaluate(machine, node.target)
    trains = isinstance(current, Flow) and current.grad is not False
    value = evaluate(machine, node.value if trains else _as_number(node.value))
    if isinstance(current, Weights) and current.raw:
        log_write(machine, current, node)
        return
    if isinstance(current, Flow):
        overwritten(machine, current, machine.at(node), _SPELLED.get(type(node.op), "in-place operator"))
    if type(current) is Seq and isinstance(value, Seq) and isinstance(node.op, ast.Add):
        call_collection(machine, current, "extend", Arguments([value]), node)
    elif isinstance(node.op, ast.Add):
        result = combine(machine, node, current, ast.Add(), value)
        _add_up(machine, node, node.target, current, value, result)
    else:
        assign(machine, node.target, combine(machine, node, current, node.op, value))


def _as_number(node: ast.expr) -> ast.expr:
    """`total += extra.item() if started else extra`: who asks knows when it is a number already."""
    for one, other in (
        ((node.body, node.orelse), (node.orelse, node.body)) if isinstance(node, ast.IfExp) else ()
    ):
        taken = one.func if isinstance(one, ast.Call) else None
        if isinstance(taken, ast.Attribute) and taken.attr == "item":
            return one if ast.dump(taken.value) == ast.dump(other) else node
    return node


def _add_up(
    machine: Machine, node: ast.stmt, target: ast.expr, current: Value, value: Value, result: Value
) -> None:
    grows = isinstance(value, Flow) and isinstance(result, Flow) and not machine.no_grad
    if isinstance(value, Flow) and grows and not restarted(machine, node, target):
        # What starts from a number holds nothing yet; of what is not known, it may.
        into = current if isinstance(current, Flow) else Flow() if isinstance(current, Const) else None
        log = machine.log
        where = machine.kept_at(node, value)
        log.kept.append(Kept(where, value, into, 0, machine.branch, len(log.uses), log.marks))
    assign(machine, target, result)


def run_delete(machine: Machine, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            machine.frame.vars.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            held = evaluate(machine, target.value)
            if isinstance(held, Flow) and isinstance(target.value, ast.Name):
                machine.frame.vars[target.value.id] = changed(held, certain=False)
            elif isinstance(held, Seq) and isinstance(target.slice, ast.Slice):
                machine.log.emptied.add(id(held))
                held.items.clear()
            elif not isinstance(held, (Flow, Seq, Map)):
                take_out(machine, held, evaluate(machine, target.slice))
        elif isinstance(target, ast.Attribute):
            take_out(machine, evaluate(machine, target.value), Const(target.attr))

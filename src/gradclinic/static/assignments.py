"""Assignments: what a name, an attribute or an item stands for from then on."""

from __future__ import annotations

import ast
import re

from gradclinic.static import holdings, words
from gradclinic.static.arithmetic import as_one, with_unit, written
from gradclinic.static.attributes import get_attribute
from gradclinic.static.conditions import name_of
from gradclinic.static.expressions import evaluate
from gradclinic.static.gradients import assign_gradient, write_weights
from gradclinic.static.syntax import last_name, pairs_up
from gradclinic.static.unpacking import spread
from gradclinic.static.values import (
    NONE,
    ActorRef,
    Const,
    Frame,
    Grad,
    Instance,
    Map,
    Model,
    Num,
    Params,
    Seq,
    Tensor,
    Unknown,
    Value,
    same,
)  # fmt: skip
from gradclinic.static.walk import Walk


def run_assign(walk: Walk, node: ast.Assign) -> None:
    value = _valued(walk, node.value, node.targets[0])
    known = isinstance(value, Num) and value.value is not None and not value.invented
    if isinstance(value, (Num, Unknown)) and not known and _divides_into_epochs(node):
        value = Num(None, units=frozenset({"epoch"}))
    for target in node.targets:
        assign(walk, target, value)


def _divides_into_epochs(node: ast.Assign) -> bool:
    """`epochs = int(iterations // len(loader))`, whatever it is that was divided."""
    value = node.value
    if isinstance(value, ast.Call) and last_name(value.func) in ("int", "ceil", "round") and value.args:
        value = value.args[0]
    divided = isinstance(value, ast.BinOp) and isinstance(value.op, (ast.FloorDiv, ast.Div))
    return divided and _EPOCHS.match(_label(node.targets[0])) is not None


_EPOCHS = words.Pattern(r"(n_?|num_?|max_|total_)?epochs$", re.I)


def run_annotated(walk: Walk, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(walk, node.target, _valued(walk, node.value, node.target))


def _valued(walk: Walk, value: ast.expr, target: ast.expr) -> Value:
    if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple) and pairs_up(value, target):
        # `self.actor, self.critic = Actor(), Critic()`: each is called by a name of its own.
        return Seq([_valued(walk, *pair) for pair in zip(value.elts, target.elts, strict=True)])
    before, walk.assigning = walk.assigning, _label(target)
    try:
        return evaluate(walk, value)
    finally:
        walk.assigning = before


def _label(target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        base = _label(target.value)
        return f"{base}.{target.attr}" if base else target.attr
    return ""


def assign(walk: Walk, target: ast.expr, value: Value) -> None:
    if isinstance(target, ast.Name):
        if isinstance(value, Tensor) and not value.loss and words.LOSS_NAME.search(target.id):
            value.loss = True
        if isinstance(value, Num):
            value = with_unit(value, target.id)
        value = holdings.loaded(value, walk.frame.vars.get(target.id), target.id)
        if isinstance(value, Model):
            holdings.rebound(walk, target, walk.frame.vars.get(target.id), value)
        _store(walk.frame, target.id, value)
    elif isinstance(target, ast.Attribute):
        base = evaluate(walk, target.value)
        _assign_attribute(walk, base, target, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part, held in zip(target.elts, spread(walk, value, target.elts), strict=True):
            assign(walk, part, held)
    elif isinstance(target, ast.Starred):
        assign(walk, target.value, value)
    elif isinstance(target, ast.Subscript):
        _assign_item(walk, target, value)


def _store(frame: Frame, name: str, value: Value) -> None:
    if name in frame.shared:
        holder = frame.parent
        while holder is not None and name not in holder.vars and holder.parent is not None:
            holder = holder.parent
        frame = holder or frame
    frame.vars[name] = value


def _assign_attribute(walk: Walk, base: Value, target: ast.Attribute, value: Value) -> None:
    if target.attr in ("grad", "_grad"):
        owner = base if isinstance(base, Params) else Params(None)
        assign_gradient(walk, owner, value, target)
    elif isinstance(base, Params) and target.attr == "data":
        write_weights(walk, base, target)
    elif isinstance(base, Model) and target.attr == "data":
        write_weights(walk, Params(base.whole()), target)
    elif target.attr == "requires_grad":
        holdings.freeze(walk, base, value, target)
    elif isinstance(base, (Instance, Unknown, Model)):
        if isinstance(value, Num):
            value = with_unit(value, target.attr)
        value = holdings.loaded(value, base.attrs.get(target.attr), target.attr)
        if isinstance(base, Model):
            holdings.put_in(walk, base, f"{base.name}.{target.attr}", value, target)
        elif isinstance(value, Model):
            holdings.exchanged(walk, base.attrs, target.attr, value, target)
        if isinstance(base, Instance):
            before = base.attrs.get(target.attr) or (base.cls.find(target.attr) if walk.unsure else None)
            value = _perhaps(walk, before, value, target)
        elif walk.unsure and isinstance(base, Unknown) and _is_flag(value):
            # `if not cuda: args.fp16 = False`: elsewhere it is what the user has asked for.
            value = _perhaps(walk, get_attribute(walk, base, target.attr), value, target)
        base.attrs[target.attr] = value
        if isinstance(base, Instance) and isinstance(value, ActorRef):
            walk.recorder.rename(value.id, f"{_label(target)}")
        elif isinstance(value, ActorRef):
            walk.recorder.escapes(value.id)
    elif isinstance(base, Grad):
        assign_gradient(walk, base.of, value, target)


def _is_flag(value: Value) -> bool:
    return isinstance(value, Const) and isinstance(value.value, bool)


def _perhaps(walk: Walk, before: Value | None, value: Value, target: ast.Attribute | ast.Subscript) -> Value:
    """`if step >= most: self.finished = True`: of a flag that is set in a branch nobody knows to be taken."""
    if walk.unsure and isinstance(before, (ActorRef, Model)) and same(value, NONE):
        return before  # `else: self.optimizer = None`, where there is nothing that could be called
    if not walk.unsure or not isinstance(value, Const) or not isinstance(before, (Const, Unknown)):
        return value
    if name_of(before) == name_of(value):
        return value
    name = target.attr if isinstance(target, ast.Attribute) else "item"
    return before if isinstance(before, Unknown) else Unknown(f"<{name}@{target.lineno}>")


def _assign_item(walk: Walk, target: ast.Subscript, value: Value) -> None:
    base = evaluate(walk, target.value)
    index = evaluate(walk, target.slice) if not isinstance(target.slice, ast.Slice) else NONE
    if isinstance(base, Map):
        key = index.value if isinstance(index, (Const, Num)) and index.value is not None else name_of(index)
        if isinstance(value, Model):
            holdings.exchanged(walk, base.items, key, value, target)
        if walk.unsure and _is_flag(value):
            value = _perhaps(walk, base.items.get(key), value, target)
        base.items[key] = value
    elif isinstance(base, Model):
        holdings.put_in(walk, base, f"{base.name}[{name_of(index)}]", value, target)
        base.attrs[f"[{name_of(index)}]"] = value
    elif isinstance(base, Unknown):
        base.attrs[f"[{name_of(index)}]"] = value
    elif isinstance(base, Grad):
        assign_gradient(walk, base.of, None, target)


def run_augmented(walk: Walk, node: ast.AugAssign) -> None:
    value = evaluate(walk, node.value)
    if isinstance(node.target, ast.Attribute) and node.target.attr == "grad":
        evaluate(walk, node.target.value)
        assign_gradient(walk, Params(None), None, node.target)
        return
    current = evaluate(walk, node.target)
    if isinstance(current, Grad):
        assign_gradient(walk, current.of, None, node.target)
        return
    if isinstance(current, Params) and not isinstance(value, (Params, Seq)):
        write_weights(walk, current, node.target)
        return
    if isinstance(node.op, ast.Add) and last_name(node.target) in walk.survey.tallies:
        value = as_one(value)
    if isinstance(current, Unknown) and isinstance(value, Num) and isinstance(node.op, ast.Add):
        current = Num(0, invented=True)
    assign(walk, node.target, written(walk, current, node.op, value, node.value))


def run_delete(walk: Walk, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            walk.frame.vars.pop(target.id, None)

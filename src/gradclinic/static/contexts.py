"""`with` blocks: the few context managers that change what happens inside."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from gradclinic.static import frameworks, modes, words
from gradclinic.static.abilities import Can
from gradclinic.static.conditions import truth
from gradclinic.static.expressions import evaluate
from gradclinic.static.held import parts
from gradclinic.static.opaque import open_tape
from gradclinic.static.precision import enter_autocast
from gradclinic.static.syntax import last_name, names_in
from gradclinic.static.values import (
    NONE,
    Accelerator,
    ClassDef,
    Func,
    Instance,
    Model,
    Tensor,
    Unknown,
    Value,
)
from gradclinic.static.walk import Walk

_SWITCHES_BY_NAME = words.Pattern(r"grad(ient)?s?($|_|(en|dis)abled)|infer|evaluat|eval_?mode", re.I)
"""A context manager of the project's own that may switch gradients: `with gradients(split == "train"):`."""


def enter(walk: Walk, node: ast.expr) -> tuple[Value, Callable[[], None]]:
    """The value bound by `as`, and what to do on leaving."""
    name = last_name(node)
    if name in ("no_grad", "inference_mode") or _grad_switched_off(walk, node, name):
        walk.no_grad += 1
        return NONE, lambda: _leave_no_grad(walk)
    leave = _enter_no_sync(walk, node) or enter_autocast(walk, node) or _enter_either(walk, node)
    if leave is not None:
        if isinstance(node, ast.Call) and _manages(walk, node):
            _doubt_modes(walk, node)
        return NONE, leave
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if name == "accumulate":
            base = evaluate(walk, node.func.value)
            frameworks.enter_accumulate(
                walk, base if isinstance(base, Accelerator) else Accelerator("accelerate")
            )
            return NONE, lambda: frameworks.leave_accumulate(walk)
        if name == "scale_loss" and node.args:
            loss = evaluate(walk, node.args[0])
            # Apex takes the scale out of the gradients where the block ends.
            walk.scaling.append(False)
            scaled = loss if isinstance(loss, Tensor) else Tensor(models=None, scaled=None, loss=True)
            return scaled, lambda: _leave_scaling(walk)
        if name in ("autocast", "profile", "detect_anomaly", "join", "record_function"):
            return NONE, _nothing
    if _is_generator_that_acts(walk, node):
        open_tape(walk, node)
        _doubt_modes(walk, node)
        return NONE, _nothing
    value = evaluate(walk, node)
    if isinstance(value, Instance) and _acts_on_leaving(walk, value.cls):
        open_tape(walk, node)
        _doubt_modes(walk, node)
    if _is_no_grad(value):
        walk.perhaps_no_grad += 1
        return value, lambda: _leave_perhaps(walk)
    return value, _nothing


def _is_no_grad(value: Value) -> bool:
    """What was made before by `torch.no_grad()`, or by a class derived from it."""
    bases = value.cls.outside_bases() if isinstance(value, Instance) else ()
    made = [value.path] if isinstance(value, Unknown) else bases
    return any(_SWITCHES_BY_NAME.search(name.rpartition(".")[2].rstrip("()")) for name in made)


def _is_generator_that_acts(walk: Walk, node: ast.expr) -> bool:
    """`@contextmanager def updating(optimizer)`: what is below its `yield` happens on leaving."""
    func = evaluate(walk, node.func) if isinstance(node, ast.Call) else None
    return (
        isinstance(func, Func)
        and any(name.endswith("contextmanager") for name in func.decorators)
        and bool(walk.can(func.node) & Can.ACT)
    )


def _doubt_modes(walk: Walk, node: ast.expr) -> None:
    """`with evaluating(model):` may have put it into either mode, until train() or eval() is called again."""
    given = [*node.args, *(item.value for item in node.keywords)] if isinstance(node, ast.Call) else []
    for value in parts(evaluate(walk, one) for one in given):
        if isinstance(value, Model):
            modes.switch(value, None, None)


def _manages(walk: Walk, node: ast.Call) -> bool:
    """Whether a context manager of the project does something by itself."""
    func = evaluate(walk, node.func)
    return (isinstance(func, ClassDef) and _acts_on_leaving(walk, func)) or _is_generator_that_acts(
        walk, node
    )


def _acts_on_leaving(walk: Walk, cls: ClassDef) -> bool:
    methods = (cls.find("__enter__"), cls.find("__exit__"))
    return any(isinstance(one, Func) and walk.can(one.node) & Can.ACT for one in methods)


def _enter_no_sync(walk: Walk, node: ast.expr) -> Callable[[], None] | None:
    """`with model.no_sync():`, plain or as one side of a condition; None for other contexts."""
    if "no_sync" not in names_in(node):
        return None
    waits = True
    if isinstance(node, ast.IfExp):
        known = truth(evaluate(walk, node.test))
        chosen = node if known is None else node.body if known else node.orelse
        waits = "no_sync" in names_in(chosen)
    walk.unsynced += waits

    def leave() -> None:
        walk.unsynced -= waits

    return leave


def _grad_switched_off(walk: Walk, node: ast.expr, name: str) -> bool:
    if name != "set_grad_enabled" or not isinstance(node, ast.Call) or not node.args:
        return False
    return truth(evaluate(walk, node.args[0])) is False


def _enter_either(walk: Walk, node: ast.expr) -> Callable[[], None] | None:
    """`with set_grad_enabled(train):`, `with no_grad() if test else nullcontext():`; None for others."""
    switches = {"set_grad_enabled", "no_grad", "inference_mode"} & set(names_in(node))
    if not switches and not _SWITCHES_BY_NAME.search(last_name(node)):
        return None
    evaluate(walk, node)
    walk.perhaps_no_grad += 1
    return lambda: _leave_perhaps(walk)


def _leave_perhaps(walk: Walk) -> None:
    walk.perhaps_no_grad -= 1


def _leave_no_grad(walk: Walk) -> None:
    walk.no_grad -= 1


def _leave_scaling(walk: Walk) -> None:
    walk.scaling.pop()


def _nothing() -> None:
    pass

"""Hands on gradients: clipping, writing, clearing `.grad` directly."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from gradclinic.facts import EventKind
from gradclinic.static import words
from gradclinic.static.syntax import last_name, names_in
from gradclinic.static.values import NOTHING, Const, Grad, Keys, Num, Params, Unknown, Value
from gradclinic.static.walk import Arguments, Walk

WRITES = words.names(
    "div_ mul_ add_ sub_ copy_ addcmul_ addcdiv_ masked_fill_ fill_ normal_ set_ nan_to_num_"
)

LIMITS = words.names("clamp_ clip_ clamp_min_ clamp_max_")


def clip(walk: Walk, optimizers: Keys, models: Keys | None, node: ast.AST) -> None:
    if isinstance(node, ast.Call) and _is_endless(node):
        return
    unsure = models if models or optimizers else None
    by_value = isinstance(node, ast.Call) and last_name(node.func) == "clip_grad_value_"
    attrs = {"by_value": True} if by_value else {}
    if walk.hooks_unscale or (isinstance(node, ast.Call) and "get_scale" in names_in(node)):
        attrs["scaled_limit"] = True  # what is clipped carries the scale, and so may the limit
    if any(walk.scaling):
        attrs["scaling"] = True
    walk.emit(EventKind.CLIP, node, optimizers=optimizers, models=unsure, attrs=attrs)


def _is_endless(node: ast.Call) -> bool:
    """`clip_grad_norm_(parameters, math.inf)` measures the norm and clips nothing."""
    limits = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "max_norm")]
    return any(last_name(limit) == "inf" or _is_inf_in_words(limit) for limit in limits)


def _is_inf_in_words(limit: ast.expr) -> bool:
    """`float("inf")`."""
    if not isinstance(limit, ast.Call) or last_name(limit.func) != "float" or not limit.args:
        return False
    text = limit.args[0]
    return isinstance(text, ast.Constant) and text.value in ("inf", "+inf", "infinity", "Infinity")


def act_on_gradient(walk: Walk, base: Grad, attr: str, args: Arguments, node: ast.AST) -> Value:
    if attr == "zero_":
        _emit(walk, EventKind.ZERO_GRAD, base.of, node)
    elif attr in LIMITS:
        _emit(walk, EventKind.CLIP, base.of, node, {"by_value": True})
    elif attr in WRITES:
        _emit(walk, EventKind.GRAD_WRITE, base.of, node)
    else:
        return base if attr in ("detach_", "detach", "data") else Unknown(f"<grad>.{attr}()")
    return base


def act_on_parameter(walk: Walk, base: Params, attr: str, node: ast.AST) -> Value:
    if attr in WRITES or attr in LIMITS:
        _emit(walk, EventKind.WEIGHT_WRITE, base, node)
        return base
    return base if attr in ("values", "items", "copy", "data", "detach") else Unknown(f"<param>.{attr}()")


def write_weights(walk: Walk, owner: Params, node: ast.AST) -> None:
    """`p.data = value`, `p -= lr * p.grad`."""
    _emit(walk, EventKind.WEIGHT_WRITE, owner, node)


def assign_gradient(walk: Walk, owner: Params, value: Value | None, node: ast.AST) -> None:
    """`p.grad = value`; None for a value that is computed in place."""
    clears = (isinstance(value, Const) and not value.value) or (isinstance(value, Num) and value.value == 0)
    # What was there before is gone, unless it is part of the value.
    attrs = {"replaced": True} if value is not None else None
    _emit(walk, EventKind.ZERO_GRAD if clears else EventKind.GRAD_WRITE, owner, node, attrs)


def _emit(
    walk: Walk, kind: EventKind, params: Params, node: ast.AST, attrs: Mapping[str, object] | None = None
) -> None:
    if kind is EventKind.ZERO_GRAD and walk.some_parameters:
        kind = EventKind.OPAQUE  # The gradients of which parameters are cleared is not followed
    models = (
        None if params.models is not None and not params.models and not params.optimizers else params.models
    )
    if kind is EventKind.ZERO_GRAD and models is None and not params.optimizers:
        attrs = {**(attrs or {}), "partly": True}  # for all that is known
    walk.emit(kind, node, optimizers=params.optimizers or NOTHING, models=models, attrs=attrs)

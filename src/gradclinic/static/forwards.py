"""What a model or a loss gives for what it is given."""

from __future__ import annotations

import ast

from gradclinic.facts import EventKind
from gradclinic.static import modes, ranks, words
from gradclinic.static.held import parts
from gradclinic.static.step_hooks import BEFORE_FORWARD, run_hooks
from gradclinic.static.values import (
    NOTHING,
    Const,
    Keys,
    Model,
    Num,
    Params,
    Tensor,
    Unknown,
    Value,
)  # fmt: skip
from gradclinic.static.walk import Arguments, Walk


def forward(walk: Walk, model: Model, args: Arguments, node: ast.AST, *, direct: bool = True) -> Tensor:
    run_hooks(walk, BEFORE_FORWARD, model.keys, node, model)
    attrs = modes.of_forward(walk, model, node, direct=direct)
    ranks.note_forward(walk, model)
    walk.emit(EventKind.FORWARD, node, actor=model.name, models=model.whole(), attrs=attrs)
    if walk.no_grad:
        return Tensor()
    reduction = args.keywords.get("reduction")
    summed = (
        isinstance(reduction, Const) and reduction.value == "sum"
    ) or "num_items_in_batch" in args.keywords
    # Told how long the window is, it may divide by that itself.
    summed = summed or any(_speaks_of_the_window(value) for value in args.all())
    reached = model.whole()
    for value in parts(args.all()):
        if isinstance(value, (Tensor, Params)) and value.models:
            reached |= value.models
        elif isinstance(value, Model):  # `env.rollout(policy)`: taken in order to be applied
            reached |= value.whole()
    return Tensor(reached, scaled=None if summed else False)


def _speaks_of_the_window(value: Value) -> bool:
    counts = isinstance(value, Num) and not value.units.isdisjoint({"accumulation", "update"})
    return counts or (isinstance(value, Unknown) and bool(words.ACCUMULATION_NAME.search(value.path)))


def compute_loss(walk: Walk, args: Arguments, node: ast.AST, *, mean: bool | None) -> Tensor:
    reduction = args.keywords.get("reduction")
    if reduction is not None:
        mean = True if isinstance(reduction, Const) and reduction.value == "mean" else None
    walk.emit(EventKind.LOSS, node, attrs={"graph": not walk.no_grad})
    reached: Keys | None = NOTHING
    given = [value for value in parts(args.all()) if isinstance(value, (Tensor, Params))]
    for value in given:
        reached = None if value.models is None or reached is None else reached | value.models
    if not reached and not given:
        reached = None
    return Tensor(reached if not walk.no_grad else NOTHING, scaled=False if mean else None, loss=True)

"""Methods that a framework calls for every batch, and what it does with the loss that they give back."""

from __future__ import annotations

import ast

from gradclinic.facts import ActorKind, EventKind
from gradclinic.static.values import Func, Instance
from gradclinic.static.walk import Walk

_MANUAL = "automatic_optimization"
_OF_TRANSFORMERS = ("transformers.", "trl.")


def called_with_batches(func: Func) -> bool:
    """`training_step` of Lightning, `compute_loss` of transformers: called again and again."""
    method = func.qualname.rpartition(".")[2]
    bases = func.bound.cls.outside_bases() if isinstance(func.bound, Instance) else []
    if method == "training_step":
        return any(name.endswith("LightningModule") for name in bases)
    return method == "compute_loss" and any(
        name.startswith(_OF_TRANSFORMERS) and name.endswith("Trainer") for name in bases
    )


def gives_a_loss(walk: Walk, func: Func) -> bool:
    """Whether the framework goes backward from it and steps: not where the class does so by hand."""
    return called_with_batches(func) and not (
        _MANUAL in walk.survey.functions
        or any(_MANUAL in own.assigns or _MANUAL in own.mentions for _, own in walk.survey.own)
    )


def update_by_itself(walk: Walk, node: ast.AST, *, since: int) -> None:
    """What the framework does after a batch that has touched gradients already: it clears them first."""
    done = {draft.kind for draft in walk.recorder.drafts[since:]}
    if EventKind.CLIP not in done or done & {EventKind.BACKWARD, EventKind.STEP}:
        return
    mine = _unseen(walk)
    walk.emit(EventKind.ZERO_GRAD, node, actor=mine, optimizers=frozenset({mine}))
    walk.emit(EventKind.BACKWARD, node, optimizers=frozenset({mine}), attrs={"scaled": None})
    walk.emit(EventKind.STEP, node, actor=mine, optimizers=frozenset({mine}))


def step_by_the_caller(walk: Walk, node: ast.AST) -> None:
    """What follows a `backward` that does no more than its name says."""
    mine = _unseen(walk)
    walk.emit(EventKind.STEP, node, actor=mine, optimizers=frozenset({mine}))
    walk.emit(EventKind.ZERO_GRAD, node, actor=mine, optimizers=frozenset({mine}))


def _unseen(walk: Walk) -> str:
    """The optimizer of whoever calls."""
    id = f"{ActorKind.OPTIMIZER}:the optimizer"
    if id not in walk.recorder.actors:
        walk.recorder.actor(ActorKind.OPTIMIZER, "the optimizer")
    return id

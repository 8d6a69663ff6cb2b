"""A project's own clip, written out: it multiplies the gradients by a factor, or limits them one by one."""

from __future__ import annotations

import ast

from gradclinic.facts import ActorKind, EventKind
from gradclinic.static.gradients import LIMITS, WRITES
from gradclinic.static.held import parts
from gradclinic.static.opaque import clip_parameters
from gradclinic.static.syntax import names_in
from gradclinic.static.values import ActorRef, Func, Model, Params, Value
from gradclinic.static.walk import Arguments, Walk


def call(walk: Walk, func: Func, args: Arguments, node: ast.Call) -> Value:
    """What it writes is what it clips; if nothing is seen to be written, then what it was given."""
    drafts = walk.recorder.drafts
    before = len(drafts)
    result = walk.call(walk, func, args, node)
    written = drafts[before:]
    if any(draft.kind is not EventKind.GRAD_WRITE for draft in written):
        return result
    if written:
        del drafts[before:]
        walk.emit(EventKind.CLIP, node, models=written[0].models, optimizers=written[0].optimizers)
    elif _writes_gradients(func) and _is_given_them(args):
        clip_parameters(walk, args, node)
    return result


def _writes_gradients(func: Func) -> bool:
    """It may merely compute a factor: `lr * clip_gradient(model, 0.25)`."""
    named = set(names_in(func.node))
    return "grad" in named and not named.isdisjoint(WRITES | LIMITS)


def _is_given_them(args: Arguments) -> bool:
    """And nothing that could take a scale out of them."""
    given = parts(args.all())
    refs = {part.kind for part in given if isinstance(part, ActorRef)}
    return refs <= {ActorKind.OPTIMIZER} and (
        bool(refs) or any(isinstance(part, (Params, Model)) for part in given)
    )

"""Functions that are one step of a training: a loop in another file calls them again and again."""

from __future__ import annotations

import ast
import os

from gradclinic.facts import EventKind, Tape
from gradclinic.static import words
from gradclinic.static.abilities import Can
from gradclinic.static.survey import Survey
from gradclinic.static.syntax import is_count, last_name, names_in, nodes_in
from gradclinic.static.users import leave_gradients
from gradclinic.static.values import FunctionNode

_KNOWN_BASES = frozenset({"object", "ABC"})
_OF_GRADIENTS = frozenset(
    {
        EventKind.BACKWARD,
        EventKind.CLIP,
        EventKind.STEP,
        EventKind.ZERO_GRAD,
        EventKind.GRAD_WRITE,
        EventKind.OPAQUE,
    }
)
_FOR_ONE_STEP = frozenset({"deepcopy", "clone"})
"""Words of code that trains a copy once, or compares what a step did."""


def is_one_step(
    node: FunctionNode | ast.Module,
    owner: ast.ClassDef | None,
    tree: ast.Module,
    survey: Survey,
    tapes: list[Tape],
    path: str,
) -> bool:
    """Whether the class steps an optimizer of its own here that nothing in the file ever clears, nor does
    anyone else in its project.

    What is called once needs no clearing, so only this tells more of a step than one walk through it does.
    """
    if owner is None or isinstance(node, ast.Module):
        return False
    if not all(_is_known(base, survey) for base in owner.bases):
        return False
    if survey.can(node) & (Can.BACKWARD | Can.STEP) != Can.BACKWARD | Can.STEP or survey.depth(node):
        return False
    if survey.beats_inside(node) or not tapes or not all(_leaves_gradients(tape) for tape in tapes):
        return False
    clears = {event.where for tape in tapes for event in tape.of_kind(EventKind.ZERO_GRAD)}
    names = names_in(tree)
    if _FOR_ONE_STEP.intersection(names_in(node)) or _trains_a_copy(owner):
        return False
    if "setattr" in names or _has_empty_methods(owner):
        return False
    # One more where gradients are touched by hand.
    if names.count("zero_grad") + ("grad" in names) != len(clears):
        return False
    held = {tape.name(id).rpartition(".")[2] for tape in tapes for id in tape.optimizers}
    return leave_gradients(os.path.abspath(path), owner.name, node.name, held)


def _trains_a_copy(owner: ast.ClassDef) -> bool:
    """`self.model = deepcopy(model)` that an optimizer is given; a copy that follows the model is another."""
    copies: set[str] = set()
    trained: set[str] = set()
    for part in nodes_in(owner):
        if isinstance(part, ast.Assign) and _FOR_ONE_STEP.intersection(names_in(part.value)):
            copies.update(map(last_name, part.targets))
        elif isinstance(part, ast.Call) and last_name(part.func) in words.TORCH_OPTIMIZERS:
            trained.update(name for given in part.args for name in names_in(given))
    return not copies.isdisjoint(trained)


def clips_first(tape: Tape) -> bool:
    """Whether the `backward` of a class clips what its caller has cleared, and then goes backward."""
    done = [event for event in tape.events if event.kind in _OF_GRADIENTS]
    return [event.kind for event in done] == [EventKind.CLIP, EventKind.BACKWARD] and all(
        (event.where.function or "").endswith(".backward") for event in done
    )


def acts_early(node: FunctionNode | ast.Module, survey: Survey, tapes: list[Tape]) -> bool:
    """Whether a step that is whole clips before it goes backward, or moves its schedule before it steps.

    What that does is seen only where the function is called again, and nobody calls such a one once.
    """
    if isinstance(node, ast.Module) or survey.depth(node) or survey.beats_inside(node):
        return False
    acting = [tape for tape in tapes if tape.kinds & _OF_GRADIENTS]
    if not acting or any(EventKind.BATCH in tape.kinds for tape in acting):
        return False
    return all(map(is_whole, acting)) and any(map(_is_early, acting))


def _is_early(tape: Tape) -> bool:
    if _first(tape, EventKind.CLIP) < _first(tape, EventKind.BACKWARD):
        return True
    # What is built out of sight may set the rate of the step to come.
    stepped = _first(tape, EventKind.STEP)
    ticks = (tick for tick in tape.of_kind(EventKind.SCHEDULE) if tick.index < stepped)
    return any(tick.actor is not None and tape.actors[tick.actor].attrs.get("torch") for tick in ticks)


def _first(tape: Tape, kind: EventKind) -> int:
    return next((event.index for event in tape.of_kind(kind)), len(tape.events))


def counted_by(node: FunctionNode | ast.Module, survey: Survey) -> str | None:
    """What counts the calls of a function that steps at every k-th: a parameter, or "" for an attribute."""
    if isinstance(node, ast.Module) or survey.depth(node) or survey.beats_inside(node):
        return None
    if survey.can(node) & (Can.BACKWARD | Can.STEP | Can.GUARD) != Can.BACKWARD | Can.STEP | Can.GUARD:
        return None
    parameters = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
    counted = {last_name(part.target) for part in nodes_in(node) if isinstance(part, ast.AugAssign)}
    for part in nodes_in(node):
        if isinstance(part, ast.If) and survey.can_any(part.body) & Can.STEP:
            asked = [name for test in nodes_in(part.test) if is_count(test) for name in names_in(test.left)]
            for name in asked:
                if name in parameters and not words.EPOCH_NAME.search(name):
                    return name
                if name in counted:
                    return ""
    return None


def is_whole(tape: Tape) -> bool:
    """Whether some optimizer is fed, stepped and cleared here, so that its caller has but to call it."""
    kinds = (EventKind.STEP, EventKind.ZERO_GRAD)
    return EventKind.BACKWARD in tape.kinds and any(
        all(any(event.concerns(optimizer) for event in tape.of_kind(kind)) for kind in kinds)
        for optimizer in tape.optimizers
    )


def _has_empty_methods(owner: ast.ClassDef) -> bool:
    """Which its heirs fill, with what they like."""
    return any(isinstance(part, ast.FunctionDef) and all(map(_is_idle, part.body)) for part in owner.body)


def _is_idle(part: ast.stmt) -> bool:
    return isinstance(part, ast.Pass) or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))


def _is_known(base: ast.expr, survey: Survey) -> bool:
    return last_name(base) in _KNOWN_BASES or last_name(base) in survey.classes


def _leaves_gradients(tape: Tape) -> bool:
    """Whether an optimizer that the class has built is fed and stepped once, and is not cleared."""
    if tape.kinds & {EventKind.OPAQUE, EventKind.GRAD_WRITE}:
        return False
    for optimizer in tape.optimizers:
        steps = list(tape.of_actor(optimizer, EventKind.STEP))
        fed = any(e.optimizers and optimizer in e.optimizers for e in tape.of_kind(EventKind.BACKWARD))
        cleared = any(event.concerns(optimizer) for event in tape.of_kind(EventKind.ZERO_GRAD))
        if len(steps) == 1 and fed and not cleared and tape.actors[optimizer].built is not None:
            return True
    return False

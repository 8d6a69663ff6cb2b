"""What a walk leaves behind: which of its actors are all in sight, and which may go on out of it."""

from __future__ import annotations

import ast

from gradclinic.facts import ActorKind, EventKind
from gradclinic.static.abilities import Can
from gradclinic.static.held import parts
from gradclinic.static.kept import is_kept, keeps_to_itself, steps_written
from gradclinic.static.survey import Survey
from gradclinic.static.values import NOTHING, ActorRef, FunctionNode, Instance, Keys, Value
from gradclinic.static.walk import Walk


def leave_to_source(walk: Walk, tree: ast.Module, *, exits: bool) -> None:
    """A schedule that was not advanced on this path, and has a `step` written somewhere, may be elsewhere; so
    may one that a program which `exits` here hands on if it does not. An optimizer whose `step` is handed on
    may be stepped by whoever has it."""
    stepping = (EventKind.SCHEDULE, EventKind.STEP)
    stepped = {draft.actor for draft in walk.recorder.drafts if draft.kind in stepping}
    idle = [
        actor
        for actor in walk.recorder.actors.values()
        if actor.kind in (ActorKind.SCHEDULE, ActorKind.OPTIMIZER)
        if actor.built is not None and actor.id not in stepped
    ]
    if idle:
        written, handed_on = steps_written(tree)
        for actor in idle:
            asked = written if actor.kind is ActorKind.SCHEDULE else handed_on
            name = actor.name.rpartition(".")[2]
            left = exits and asked is written and not is_kept(name, tree, walk.survey.functions)
            if left or name in asked:
                walk.recorder.escapes(actor.id)


def all_reached(survey: Survey, reached: set[ast.AST]) -> bool:
    return all(
        node in reached
        for node in survey.qualnames
        if node not in survey.foreign and survey.can(node) & Can.ACT
    )


def kept_inside(walk: Walk, node: FunctionNode, result: Value) -> Keys:
    """Actors that the function built for itself: it neither gives them back nor lets others hold them.

    What is written is asked too: a step that the walk did not come to, or that is handed on, is one.
    """
    if any(inner not in walk.reached for inner in _acting_inside(walk.survey, node)):
        return NOTHING
    mine = {
        value.id
        for name, value in walk.frame.vars.items()
        if isinstance(value, ActorRef) and value.built and name not in walk.frame.shared
        if is_kept(name, node, walk.survey.functions)
        if not walk.recorder.known(value.id).attrs.get("escapes")
    }
    given = {part.id for part in parts([result]) if isinstance(part, ActorRef)}
    held = walk.frame.vars.get("self")
    given |= {part.id for part in parts([held]) if isinstance(part, ActorRef)}
    return frozenset(mine - given)


def kept_by_its_class(
    walk: Walk, node: FunctionNode, owner: ast.ClassDef | None, tree: ast.Module
) -> Keys:
    """Actors that a class built for itself and that nothing in the file steps.

    Who calls a method for each batch may step what the class leaves to him, and who calls one for each epoch
    may advance its schedules. The loop around those is in sight, or nothing is said.
    """
    levels = walk.survey.depth(node)
    this = walk.frame.vars.get("self")
    if owner is None or not levels or not isinstance(this, Instance) or this.cls.outside_bases():
        return NOTHING
    return frozenset(
        held.id
        for name, held in this.attrs.items()
        if isinstance(held, ActorRef)
        and held.built
        and not walk.recorder.known(held.id).attrs.get("escapes")
        if levels > 1 or held.kind is ActorKind.OPTIMIZER
        if keeps_to_itself(name, owner, tree, walk.survey.functions)
    )


def _acting_inside(survey: Survey, node: FunctionNode) -> list[FunctionNode]:
    within = f"{survey.qualnames[node]}."
    return [
        inner
        for inner in survey.nested
        if survey.qualnames[inner].startswith(within) and survey.can(inner) & Can.ACT
    ]

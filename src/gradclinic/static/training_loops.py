"""The training loops of a file: every root walked, and the tapes and modes that come of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from gradclinic.facts import EventKind, Location, Tape
from gradclinic.static import words
from gradclinic.static.budgets import STEPS_ELSEWHERE, STEPS_PER_FILE
from gradclinic.static.conduct import evaluates_by_flag, evaluations, measured_only, modes_of_training
from gradclinic.static.relevance import Relevance
from gradclinic.static.roots import find_roots, shape_of, walk_root
from gradclinic.static.survey import Survey
from gradclinic.static.values import Module
from gradclinic.static.walk import Budget

_TELLING = frozenset(
    {
        EventKind.BACKWARD,
        EventKind.STEP,
        EventKind.CLIP,
        EventKind.UNSCALE,
        EventKind.SCALER_UPDATE,
        EventKind.SCHEDULE,
    }
)


def loop_cases(
    tree: ast.Module, path: str, modules: Mapping[str, Module], *, acts: bool = True
) -> Iterator[tuple[object, ...]]:
    """The tapes of the file, each root with its paths, and in which mode its models are trained.

    Without `acts` nothing in the file itself trains, only modules that it may call: it is given less time.
    """
    survey = Survey(tree, modules)
    relevance = Relevance(survey)
    reached: set[ast.AST] = set()
    budget = Budget(STEPS_PER_FILE if acts else STEPS_ELSEWHERE)
    told: set[tuple[type, Location | None]] = set()
    parts: set[ast.AST] = set()
    """What was reached from where there were too many paths: nothing is known of it yet."""
    trained: list[Tape] = []
    measuring: list[Tape] = []
    for root in find_roots(tree, survey, reached, parts):
        if root.aim in reached or not budget.left():
            continue
        # A loop is whole by itself; of less than that, who calls it may do the rest.
        if root.aim in parts and not survey.depth(root.aim):
            continue
        before = set(reached)
        tapes = walk_root(root, tree, survey, relevance, path, reached, budget)
        if not tapes:
            parts |= reached - before
            reached &= before | {root.aim}
        telling = _distinct([tape for tape in tapes if tape.kinds & _TELLING])
        if telling:
            yield telling
        if root.aim in parts:
            continue  # in the mode that its callers leave behind
        trained += telling
        if not telling and words.EVALUATES.match(getattr(root.node, "name", "")):
            measuring += tapes
        evaluating = [*telling, *(tape for tape in tapes if evaluates_by_flag(tape))]
        for fact in (*modes_of_training(telling), *evaluations(evaluating, beside=tapes)):
            if (type(fact), fact.where) not in told:
                told.add((type(fact), fact.where))
                yield (fact,)
    for fact in measured_only(measuring, trained):
        if (type(fact), fact.where) not in told:
            yield (fact,)


def _distinct(tapes: list[Tape]) -> tuple[Tape, ...]:
    """Each order of events once, though several paths may lead to it."""
    seen: dict[tuple[object, ...], Tape] = {}
    for tape in tapes:
        seen.setdefault(shape_of(tape), tape)
    return tuple(seen.values())

"""One file in, one observation out: every root of the file walked, and what the file shows plainly."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from gradclinic.facts import EventKind, Location, Observation, Source, Tape
from gradclinic.static import words
from gradclinic.static.conduct import evaluations, modes_of_training
from gradclinic.static.flow import flow_cases, flow_may_tell
from gradclinic.static.legacy import check, parse
from gradclinic.static.modules import Find, imported
from gradclinic.static.plain import plain_facts, plainly_may_tell
from gradclinic.static.relevance import Relevance
from gradclinic.static.roots import STEPS_PER_FILE, find_roots, shape_of, walk_root
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

_HAPPENS = ("backward", "step")
"""Without these words nothing on a tape can stand in a file itself."""
ACTING = re.compile(r"backward|unscale_|clip_|[Ss]caler|SCALER|\b(manual_step|step|train|eval)\s*[\[(\\]")
"""What stands in every file that has a root to walk from; `timesteps` alone is none."""
_DRIVES = ("train", "optim", "fit(")
"""Without these it does not drive the training of another module either."""


def observe_source(text: str, path: str, find: Find | None = None) -> Observation:
    """The tapes of the training loops in `text`; `find` gives the other modules of its project.

    SyntaxError and ValueError are those of `ast.parse`.
    """
    trains = any(word in text for word in (*_HAPPENS, *_DRIVES))
    if not trains and not flow_may_tell(text) and not plainly_may_tell(text):
        check(text, path)
        return Observation(Source.STATIC)
    tree = parse(text, path)
    try:
        facts = (*flow_cases(tree, text, path), *((fact,) for fact in plain_facts(tree, text, path)))
        modules = imported(tree, find) if trains else {}
        return Observation(Source.STATIC, (*_loops(tree, text, path, modules), *facts))
    except RecursionError:
        return Observation(Source.STATIC, gaps={"loop": "the source is nested too deeply to be followed"})


def _loops(
    tree: ast.Module, text: str, path: str, modules: Mapping[str, Module]
) -> tuple[tuple[object, ...], ...]:
    """The tapes of the file, each root with its paths."""
    if not modules and not (any(word in text for word in _HAPPENS) and ACTING.search(text)):
        return ()
    if _tests(text, path):
        return ()
    survey = Survey(tree, modules)
    relevance = Relevance(survey)
    cases: list[tuple[object, ...]] = []
    reached: set[ast.AST] = set()
    budget = Budget(STEPS_PER_FILE)
    told: set[tuple[type, Location | None]] = set()
    for root in find_roots(tree, survey):
        if root.node in reached or not budget.left():
            continue
        tapes = walk_root(root, tree, survey, relevance, path, reached, budget)
        telling = _distinct([tape for tape in tapes if tape.kinds & _TELLING])
        if telling:
            cases.append(telling)
        for fact in (*modes_of_training(telling), *evaluations(telling or tapes)):
            if (type(fact), fact.where) not in told:
                told.add((type(fact), fact.where))
                cases.append((fact,))
    return tuple(cases)


def _tests(text: str, path: str) -> bool:
    """Whether the file tests something: its loops go a few steps, and in the order that is tested.

    The name alone does not tell: `test_net.py` may well be the evaluation itself.
    """
    return words.TEST_FILE.search(path) is not None and "def test_" in text


def _distinct(tapes: list[Tape]) -> tuple[Tape, ...]:
    """Each order of events once, though several paths may lead to it."""
    seen: dict[tuple[object, ...], Tape] = {}
    for tape in tapes:
        seen.setdefault(shape_of(tape), tape)
    return tuple(seen.values())

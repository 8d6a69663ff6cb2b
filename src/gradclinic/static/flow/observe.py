"""One file, executed on abstract tensors: the facts about its losses and graphs."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from gradclinic.facts import Location, LossCall, RetainedGraph
from gradclinic.static import words
from gradclinic.static.callers import MOST_CALLERS, callers_of
from gradclinic.static.flow.endings import told_in
from gradclinic.static.flow.evaluation_facts import evaluation_cases
from gradclinic.static.flow.executing import PATIENCE, executed, modules_named, remembers, run_by_callers
from gradclinic.static.flow.expressions import evaluate
from gradclinic.static.flow.graph_facts import SEEN, graph_cases, unsure_of
from gradclinic.static.flow.kept_facts import kept_cases
from gradclinic.static.flow.loss_facts import loss_cases
from gradclinic.static.flow.machine import MOST_STEPS, MOST_STEPS_ELSEWHERE, Log, Machine
from gradclinic.static.flow.statements import execute
from gradclinic.static.flow.write_facts import write_cases
from gradclinic.static.of_tests import is_trial
from gradclinic.static.values import Frame

Cases = tuple[tuple[object, ...], ...]
_RESCALES = re.compile(r"\.grad(\.data)?(\s*[/*]=|\.(div|mul)_\()")
_RETAINS = re.compile(r"backward\([^\n]*retain_graph\s*=\s*True")
_FREEZES = re.compile(r"requires_grad\w*\s*[=(]\s*False")
_CASTS = re.compile(r"autocast|accelerat|mixed_precision|[Ff]abric|\bamp|fp16|\.half\(")
"""What a file says where it may be copies of the weights, in another precision, that are computed with."""


def flow_cases(
    tree: ast.Module,
    text: str,
    path: str,
    beside: Collection[str] | None = None,
    *,
    computes: bool = True,
    evaluated: Collection[Location] = (),
) -> Cases:
    """What the file's losses are given and what becomes of them. Empty where nothing can be told.

    Without `computes` only other files that it hands a model to have any. Who calls it is asked what its
    losses are given, but for the files `beside` it; nobody where that is None. Of forwards that are known to
    be `evaluated` with a graph, it is told where that is kept.
    """
    frozen = "freeze" in text or bool(_FREEZES.search(text))
    curious = any(word in text for word in ("nll_loss", "NLLLoss")) or bool(_RETAINS.search(text))
    # Which of the two it is, what the model was built with may say.
    curious |= "BCEWithLogitsLoss" in text and "CrossEntropyLoss" in text
    machine = Machine(path, path, Frame(""), execute, evaluate, path, freezes=frozen, reads_all=curious)
    machine.steps = MOST_STEPS if computes else MOST_STEPS_ELSEWHERE
    machine.models = frozenset(modules_named(text))
    if _RETAINS.search(text):
        machine.steps *= PATIENCE
    log = executed(machine, tree, text)
    log.remembers = bool(log.uses) and bool(log.marks) and remembers(log, text)
    log.rescales = bool(_RESCALES.search(text))
    log.casts = _CASTS.search(text) is not None
    # A test goes a few steps, and may well retain and keep what it wants to look at.
    trial = is_trial(text, path)
    graphs = (case for case in graph_cases(log) if not (trial and isinstance(case[0], RetainedGraph)))
    # What a test gives to a loss is mostly made up.
    learned = () if trial else (*loss_cases(log), *kept_cases(log), *evaluation_cases(log, tree, evaluated))
    cases = (*learned, *graphs, *write_cases(log))
    # What it gives to a loss of the project for a try is no fault of that.
    own = tuple(case for case in cases if _place(case[0]).path == path or (not trial and _is_told_here(case)))
    if beside is not None:
        own = tuple(told_in(path, case, beside) for case in own)
    if not computes or beside is None:
        return own
    known = {_place(case[0]) for case in own if _is_told_here(case)}
    return (
        *own,
        *(_given_by_callers(tree, text, path, beside, known) if _lacks(log) else ()),
        *(_kept_for_callers(tree, text, path, unsure_of(log, path)) if log.finished else ()),
    )


def _lacks(log: Log) -> bool:
    """Whether the file itself does not tell of all its losses which they are and what they are given."""
    return not log.losses or not all(call.made_by for call in log.losses.values())


def _given_by_callers(
    tree: ast.Module, text: str, path: str, beside: Collection[str], known: Collection[Location]
) -> Iterator[tuple[object, ...]]:
    """What the losses of the file are given by those who call its functions, as far as it is not known."""
    callers = [file for file in callers_of(path, beside) if not words.TEST_FILE.search(file)]
    for log in run_by_callers(tree, text, path, callers, MOST_STEPS_ELSEWHERE):
        for case in loss_cases(log):
            if _is_told_here(case) and _place(case[0]).path == path and _place(case[0]) not in known:
                yield case


def _kept_for_callers(
    tree: ast.Module, text: str, path: str, asked: set[Location]
) -> Iterator[tuple[object, ...]]:
    """Graphs that the file keeps for nobody, whoever of all that call its functions does so."""
    callers = callers_of(path) if asked and not is_trial(text, path) else []
    if len(callers) == MOST_CALLERS:
        return  # and there may be more
    told: set[Location] = set()
    denied: set[Location] = set()
    for log in run_by_callers(tree, text, path, callers, MOST_STEPS * PATIENCE):
        kept = {case[0].where for case in graph_cases(log) if isinstance(case[0], RetainedGraph)}
        told |= kept
        denied |= {use.where for use in log.uses} - kept
    for where in asked & (told - denied):
        yield (RetainedGraph(where, SEEN, used=False, nodes=0),)


def _is_told_here(case: tuple[object, ...]) -> bool:
    """A loss called in another file, which does not know what it is given: the model is made in this one."""
    return all(isinstance(fact, LossCall) and fact.made_by for fact in case)


def _place(fact: object) -> Location:
    """Where a fact is told; what happens in other files is told when those are read."""
    place = getattr(fact, "where", None) or getattr(fact, "used", None) or getattr(fact, "backward", None)
    assert isinstance(place, Location)
    return place

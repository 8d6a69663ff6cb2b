"""One file in, one observation out: its loops walked, its losses followed, and what it shows plainly."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from gradclinic.facts import Observation, Source
from gradclinic.static import words
from gradclinic.static.imports import Find, imported
from gradclinic.static.legacy import check, parse
from gradclinic.static.plain import plain_facts, plainly_may_tell
from gradclinic.static.values import Module

_HAPPENS = ("backward", "step")
"""Without these words nothing on a tape can stand in a file itself."""
_ACTING = tuple(
    re.compile(rf"{word}(?<!def {word})(?:(?<!\w{word})|(?<=manual_{word}))\s*[\[(\\]")
    for word in ("backward", "step", "train", "eval")
)
"""Calls by these names, not definitions. Each begins with its letters, which are quickly searched for."""
_MENDING = ("unscale_", "clip_grad", "clip_master", "scaler", "Scaler", "SCALER")
_DRIVES = ("train", "optim", "fit(")
"""Without these it does not drive the training of another module either."""
_LOSSES = ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss")
"""Without these and a backward there is no loss to follow."""
_TRAINS_ELSEWHERE = re.compile(r"^\s*(?:from|import)\b.*\btrain", re.M)
"""What the file builds it may give to a module that trains it."""


def acts(text: str) -> bool:
    """Whether a root to walk from may stand in the file: `timesteps` and `def backward(ctx)` are none."""
    if not any(word in text for word in _HAPPENS):
        return False
    return any(called.search(text) for called in _ACTING) or any(word in text for word in _MENDING)


def _computes(text: str) -> bool:
    if "torch" not in text:
        return False
    return any(word in text for word in _LOSSES) or _ACTING[0].search(text) is not None


def observe_source(text: str, path: str, find: Find | None = None) -> Observation:
    """The tapes of the training loops in `text`; `find` gives the other modules of its project.

    SyntaxError and ValueError are those of `ast.parse`.
    """
    tells = plainly_may_tell(text)
    trains = any(word in text for word in (*_HAPPENS, *_DRIVES)) and not _tests(text, path)
    modules = imported(text, find) if trains else {}
    hands_on = bool(modules) or (trains and find is not None and _TRAINS_ELSEWHERE.search(text) is not None)
    computes = hands_on or _computes(text)
    loops = bool(modules) or (trains and acts(text))
    if not (computes or tells or loops):
        check(text, path)
        return Observation(Source.STATIC)
    tree = parse(text, path)
    try:
        cases = [
            *(_loops(tree, path, modules) if loops else ()),
            *(_losses(tree, text, path) if computes else ()),
            *((fact,) for fact in plain_facts(tree, text, path)),
        ]
        return Observation(Source.STATIC, tuple(cases))
    except RecursionError:
        return Observation(Source.STATIC, gaps={"loop": "the source is nested too deeply to be followed"})


# What follows a program is loaded for files that have something to follow: most of a project has not.


def _losses(tree: ast.Module, text: str, path: str) -> tuple[tuple[object, ...], ...]:
    from gradclinic.static.flow import flow_cases

    return flow_cases(tree, text, path)


def _loops(tree: ast.Module, path: str, modules: Mapping[str, Module]) -> Iterator[tuple[object, ...]]:
    from gradclinic.static.training_loops import loop_cases

    return loop_cases(tree, path, modules)


def _tests(text: str, path: str) -> bool:
    """Whether the file tests something: its loops go a few steps, and in the order that is tested.

    The name alone does not tell: `test_net.py` may well be the evaluation itself.
    """
    return words.TEST_FILE.search(path) is not None and "def test_" in text

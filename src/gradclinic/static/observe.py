"""One file in, one observation out: its loops walked, its losses followed, and what it shows plainly."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts import Observation, Source
from gradclinic.static import words
from gradclinic.static.imports import Find, imported
from gradclinic.static.legacy import check, parse
from gradclinic.static.plain import plain_facts, plainly_may_tell

_HAPPENS = ("backward", "step")
"""Without these words nothing on a tape can stand in a file itself."""
ACTING = re.compile(r"backward|unscale_|clip_|[Ss]caler|SCALER|\b(manual_step|step|train|eval)\s*[\[(\\]")
"""What stands in every file that has a root to walk from; `timesteps` alone is none."""
_DRIVES = ("train", "optim", "fit(")
"""Without these it does not drive the training of another module either."""
_COMPUTES = re.compile(
    r"backward\(|cross_entropy|CrossEntropyLoss|nll_loss|NLLLoss|binary_cross_entropy|BCELoss|BCEWithLogitsLoss"
)
"""Without these there is no loss to follow."""


def observe_source(text: str, path: str, find: Find | None = None) -> Observation:
    """The tapes of the training loops in `text`; `find` gives the other modules of its project.

    SyntaxError and ValueError are those of `ast.parse`.
    """
    trains = any(word in text for word in (*_HAPPENS, *_DRIVES))
    computes = "torch" in text and _COMPUTES.search(text) is not None
    if not trains and not computes and not plainly_may_tell(text):
        check(text, path)
        return Observation(Source.STATIC)
    tree = parse(text, path)
    try:
        losses = _losses(tree, text, path) if computes else ()
        plain = tuple((fact,) for fact in plain_facts(tree, text, path))
        loops = _loops(tree, text, path, find) if trains and not _tests(text, path) else ()
        return Observation(Source.STATIC, (*loops, *losses, *plain))
    except RecursionError:
        return Observation(Source.STATIC, gaps={"loop": "the source is nested too deeply to be followed"})


# What follows a program is loaded for files that have something to follow: most of a project has not.


def _losses(tree: ast.Module, text: str, path: str) -> tuple[tuple[object, ...], ...]:
    from gradclinic.static.flow import flow_cases

    return flow_cases(tree, text, path)


def _loops(tree: ast.Module, text: str, path: str, find: Find | None) -> Iterator[tuple[object, ...]]:
    modules = imported(tree, find)
    if modules or (any(word in text for word in _HAPPENS) and ACTING.search(text)):
        from gradclinic.static.training_loops import loop_cases

        yield from loop_cases(tree, path, modules)


def _tests(text: str, path: str) -> bool:
    """Whether the file tests something: its loops go a few steps, and in the order that is tested.

    The name alone does not tell: `test_net.py` may well be the evaluation itself.
    """
    return words.TEST_FILE.search(path) is not None and "def test_" in text

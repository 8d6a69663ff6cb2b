"""One file in, one observation out: its loops walked, its losses followed, and what it shows plainly."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from types import ModuleType

from gradclinic.facts import Evaluation, Location, Observation, Source
from gradclinic.frozen import frozen
from gradclinic.static import words
from gradclinic.static.bare import bare_and_unquoted
from gradclinic.static.callers import trainers_of
from gradclinic.static.imports import Find, imported
from gradclinic.static.legacy import check
from gradclinic.static.model_ends import may_end
from gradclinic.static.of_tests import is_test
from gradclinic.static.plain import plain_facts, readers_for
from gradclinic.static.trees import tree_of
from gradclinic.static.values import Module

_HAPPENS = ("backward", "step", "compute_loss")
"""Without these words nothing on a tape can stand in a file itself."""
_SETS_MODES = ("train", "eval")
_STEPPED = re.compile(r"(?:\b(\w+)(?:\(\))?\.)?(?<!def )\b(?:manual_)?step\s*[\[(\\]")
_MENDING = tuple(
    map(
        re.compile,
        (
            r"unscale_(?<!\wunscale_)\s*[\[(\\]",
            r"clip_(?<!\wclip_)(?:grad|master)\w*\s*[\[(\\]",
            r"caler(?<=[sS]caler)\w*(?:\[[^\]\n]*\])?(?:\.\w+)*\s*[\[(\\]",
            r"SCALER\w*(?:\[[^\]\n]*\])?(?:\.\w+)*\s*[\[(\\]",
        ),
    )
)
"""Each begins with letters, and is searched for many times as fast as what might begin with several."""
_UPDATES = tuple(
    map(
        re.compile,
        (
            *("zero_grad", "clip_grad", "no_sync", "autocast", "scale_loss", "loss_scal", "Scaler"),
            r"optim(?!iz(?:e|ed|es|ing|ation)(?![a-z]))",
            r"accum(?!ulate_grad\b|ulated_)",
        ),
    )
)
"""What stands beside a backward that has a place in an order; what merely differentiates has none of it."""
_CLASSES = ("CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss")
_FUNCTIONS = (
    re.compile(
        r"cross_entropy(?:(?<!\wcross_entropy)(?<!def cross_entropy)"
        r"|(?<=\bbinary_cross_entropy)(?<!def binary_cross_entropy)(?<!aten\.binary_cross_entropy))"
    ),
    re.compile(r"nll_loss(?<!\wnll_loss)(?!\w*_(?:for|back)ward)"),
)
"""What is called like them in a project, too, but not what they are made of in aten, nor a definition."""
_BY_NAME = tuple(
    map(
        re.compile,
        (
            r"getattr\(\s*(?:torch\.)?(?:\w*nn|F|functional)\b",
            r"getattr\(\s*[\w.]+\s*,\s*[\"']\w*(?:Loss|entropy|nll)",
            r"__dict__\s*\[\s*[\"']\w*(?:Loss|entropy|nll)",
            r"vars\([\w.]+\)\s*\[\s*[\"']\w*(?:Loss|entropy|nll)",
        ),
    )
)
"""A loss within quotes is one of torch's where it is asked for by its name."""
_DRIVES = ("train", "optim", "fit(")
"""Without these it does not drive the training of another module either."""
_TRAINS_ELSEWHERE = tuple(map(re.compile, (r"from [^\n]*\btrain", r"import [^\n]*\btrain")))
_GIVES = tuple(
    re.compile(rf"{word[1:]}(?<=[{word[0]}{word[0].upper()}]{word[1:]})\w*\(\s*[\w*]")
    for word in ("train", "learn", "solve", "fit", "adapt")
)
"""`train_source(encoder, classifier)`, `Solver(model).run()`."""


def acts(text: str) -> bool:
    """Whether a root to walk from may stand in the file: `timesteps` and `def backward(ctx)` are none."""
    if not any(word in text for word in _HAPPENS):
        return False
    if _steps(text) or any(words.called(word, text) for word in _SETS_MODES):
        return True
    if words.called("backward", text) and any(pattern.search(text) for pattern in _UPDATES):
        return True
    return any(pattern.search(text) for pattern in _MENDING)


def _steps(text: str) -> bool:
    """Whether an optimizer may be stepped; a sampler of diffusion steps nothing but its schedule."""
    if not words.called("step", text):
        return False
    if "optim" in text or "backward" in text:
        return True
    return any(
        not words.SCHEDULE_NAME.search(stepped) and not words.NOT_AN_OPTIMIZER.search(stepped)
        for stepped in _STEPPED.findall(text)
    )


def _computes(text: str, unquoted: str) -> bool:
    if words.called("backward", unquoted):
        return True
    if not words.speaks_of_losses(text):
        return False
    return any(pattern.search(text) for pattern in _BY_NAME) or _has_loss_of_torch(unquoted)


def _has_loss_of_torch(text: str) -> bool:
    return any(name in text for name in _CLASSES) or any(pattern.search(text) for pattern in _FUNCTIONS)


@frozen
class _Asked:
    """What the words of a file let expect of it."""

    tells: tuple[ModuleType, ...]
    """Who may read a fact off it; by itself it may"""
    trains: bool
    """train something, by itself or by another module,"""
    acts: bool
    """have a root to walk from,"""
    computes: bool
    """and a loss or a backward."""


def _asked(text: str, path: str) -> _Asked:
    code, unquoted = bare_and_unquoted(text)
    # If only in a remark: a file that is handed a model need not import torch.
    torch = "torch" in text
    trains = any(word in code for word in (*_HAPPENS, *_DRIVES)) and not is_test(code, path)
    return _Asked(
        readers_for(code) if torch else (), trains, trains and acts(code), torch and _computes(code, unquoted)
    )


def _hands_on(text: str, modules: Mapping[str, Module]) -> bool:
    """Whether what the file builds may be given to a module that trains it."""
    elsewhere = any(module.computes for module in modules.values())
    if elsewhere and "optim" in text and ".parameters()" in text:
        return True  # Whose loop steps the optimizer that is built here?
    if not any(pattern.search(text) for pattern in _GIVES):
        return False
    return elsewhere or any(_begins_line(found, text) for found in _found(_TRAINS_ELSEWHERE, text))


def _found(patterns: tuple[re.Pattern[str], ...], text: str) -> Iterator[re.Match[str]]:
    return chain.from_iterable(pattern.finditer(text) for pattern in patterns)


def _begins_line(found: re.Match[str], text: str) -> bool:
    return not text[text.rfind("\n", 0, found.start()) + 1 : found.start()].strip()


def observe_source(
    text: str, path: str, find: Find | None = None, beside: Collection[str] | None = None
) -> Observation:
    """The tapes of the training loops in `text`; `find` gives the other modules of its project.

    Who calls its functions is asked too, but for the files `beside` it, which are observed for themselves;
    where that is None nobody is.

    SyntaxError and ValueError are those of `ast.parse`.
    """
    asked = _asked(text, path)
    modules = imported(text, find) if asked.trains else {}
    followed = find is not None or path.endswith(".ipynb")
    hands_on = asked.trains and followed and _hands_on(text, modules)
    loops = bool(modules) or asked.acts
    trainers = trainers_of(path, beside) if beside is not None and may_end(text) else []
    if not (asked.computes or hands_on or asked.tells or loops or trainers):
        check(text, path)
        return Observation(Source.STATIC)
    tree = tree_of(text, path)
    try:
        walked = [*_loops(tree, path, modules, itself=asked.acts)] if loops else []
        cases = [
            *walked,
            *(
                _losses(tree, text, path, beside, _evaluated(walked), computes=asked.computes)
                if asked.computes or hands_on
                else ()
            ),
            *(_endings(tree, text, path, beside or (), trainers) if trainers else ()),
            *((fact,) for fact in plain_facts(asked.tells, tree, text, path)),
        ]
        return Observation(Source.STATIC, tuple(cases))
    except RecursionError:
        return Observation(Source.STATIC, gaps={"loop": "the source is nested too deeply to be followed"})


def observe_loops_with(module: str, text: str, path: str, find: Find | None) -> Observation:
    """Of the source of one that calls functions of the `module`: the tapes of its training loops alone.

    Nothing where that module is not followed. SyntaxError and ValueError are those of `ast.parse`.
    """
    asked = _asked(text, path)
    modules = imported(text, find) if asked.trains else {}
    if not any(other.path == module for other in modules.values()):
        return Observation(Source.STATIC)
    return Observation(Source.STATIC, tuple(_loops(tree_of(text, path), path, modules, itself=asked.acts)))


# What follows a program is loaded for files that have something to follow: most of a project has not.


def _evaluated(cases: list[tuple[object, ...]]) -> list[Location]:
    """Forwards of evaluations that surely build graphs, over and over."""
    facts = (fact for case in cases for fact in case if isinstance(fact, Evaluation))
    return [fact.where for fact in facts if fact.builds_graph and fact.called_in_sight and not fact.at_once]


def _losses(
    tree: ast.Module,
    text: str,
    path: str,
    beside: Collection[str] | None,
    evaluated: list[Location],
    *,
    computes: bool,
) -> tuple[tuple[object, ...], ...]:
    from gradclinic.static.flow import flow_cases

    return flow_cases(tree, text, path, beside, computes=computes, evaluated=evaluated)


def _endings(
    tree: ast.Module, text: str, path: str, beside: Collection[str], trainers: list[str]
) -> Iterator[tuple[object, ...]]:
    from gradclinic.static.flow import ending_cases

    return ending_cases(tree, text, path, beside, trainers)


def _loops(
    tree: ast.Module, path: str, modules: Mapping[str, Module], *, itself: bool
) -> Iterator[tuple[object, ...]]:
    from gradclinic.static.training_loops import loop_cases

    return loop_cases(tree, path, modules, acts=itself)

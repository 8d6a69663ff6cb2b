"""What lint makes of a source, the way the tests compare it: a tape as one line of text, findings by line."""

from __future__ import annotations

from textwrap import dedent

from gradclinic.engine import judge
from gradclinic.facts import EventKind, Tape
from gradclinic.findings import Severity
from gradclinic.static import observe_source

TORCH = """
import torch
from torch import nn
import torch.nn.functional as F
"""
QUIET = frozenset(
    {
        EventKind.BUILD,
        EventKind.MODE,
        EventKind.FORWARD,
        EventKind.LOSS,
        EventKind.SAVE,
        EventKind.FREEZE,
        EventKind.REPLACE,
    }
)


def tapes(source: str) -> list[tuple[Tape, ...]]:
    """The cases of a source, each with its paths."""
    observation = observe_source(dedent(source), "train.py")
    cases: list[tuple[Tape, ...]] = []
    for case in observation.cases:
        paths = tuple(tape for tape in case if isinstance(tape, Tape))
        if paths:
            cases.append(paths)
    return cases


def only_tape(source: str) -> Tape:
    """The one tape of a source with one root and one path."""
    ((tape,),) = tapes(source)
    return tape


def spelled(tape: Tape, *, names: bool = False, hide: frozenset[EventKind] = QUIET) -> str:
    """`batch zero_grad backward step`; with `names`, whom each event happened to."""
    words = []
    for event in tape.events:
        if event.kind in hide:
            continue
        word = event.kind.replace(" ", "-")
        if names:
            concerned = event.optimizers if event.optimizers is not None else ("?",)
            who = ",".join(sorted(tape.name(id) if id != "?" else "?" for id in concerned))
            word += f"({who})" if who else ""
        words.append(word)
    return " ".join(words)


def told(source: str) -> set[tuple[str, int]]:
    """What lint warns of, by code and line."""
    return {
        (finding.code, finding.location.line)
        for finding in judge([observe_source(source, "train.py")])
        if finding.location and finding.severity is not Severity.INFO
    }


def marked(source: str) -> set[tuple[str, int]]:
    """What the source itself says is to be found, in comments like `# GC101`."""
    return {
        (line.rpartition("# ")[2], number)
        for number, line in enumerate(source.splitlines(), 1)
        if "  # GC" in line
    }

"""One file: read, observed, judged."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from gradclinic.config import Config
from gradclinic.engine import judge
from gradclinic.errors import debugging, fault
from gradclinic.facts import Observation
from gradclinic.findings import Check, Finding, Point
from gradclinic.frozen import frozen
from gradclinic.ignores import without_ignored
from gradclinic.judged import judged
from gradclinic.linting.callers import told_by_callers
from gradclinic.linting.files import NOTEBOOK, STDIN
from gradclinic.linting.modules import finder
from gradclinic.source_text import SourceText, UnreadableSource, decode, read_source
from gradclinic.static import observe_source

STDIN_NAME = "<stdin>"


@frozen
class Examined:
    """What one file contributes to the diagnosis; small, for it travels between processes."""

    findings: tuple[Finding, ...] = ()
    judged: tuple[Check, ...] = ()
    """Empty, as the checklist, for a file that shows nothing to look at."""
    checklist: tuple[Point, ...] = ()
    problem: str = ""


def examine(path: str, config: Config, beside: frozenset[str] | None = frozenset()) -> Examined:
    """One file by itself; what it is given by those `beside` it, their own examination tells.

    None for all of its project.
    """
    with warnings.catch_warnings():
        # Python's own remarks on how the file is written are not what was asked for.
        warnings.simplefilter("ignore")
        return _examine(path, config, beside)


def _examine(path: str, config: Config, beside: frozenset[str] | None) -> Examined:
    name = STDIN_NAME if path == STDIN else path
    try:
        return examine_text(read(name), name, config, beside)
    except UnreadableSource as error:
        return Examined(problem=f"{name}: cannot be read: {error}")
    except SyntaxError as error:
        file = error.filename or name
        place = f"{file}:{error.lineno}:{error.offset or 1}" if error.lineno else file
        return Examined(problem=f"{place}: not valid Python: {error.msg}")
    except (RecursionError, MemoryError):  # the latter is how Python's own parser says it
        return Examined(problem=f"{name}: nested too deeply to be followed")
    except Exception as error:
        # One file that trips gradclinic must not keep the others from being read.
        if debugging():
            raise
        return Examined(problem=f"{name}: {fault(error)}")


def read(name: str) -> SourceText:
    return _standard_input() if name == STDIN_NAME else read_source(name)


@cache
def _standard_input() -> SourceText:
    """Read once: a fix looks at it again."""
    return decode(sys.stdin.buffer.read())


def examine_text(
    source: SourceText, name: str, config: Config, beside: frozenset[str] | None = None
) -> Examined:
    if name.endswith(NOTEBOOK):
        from gradclinic.linting.notebooks import program  # few sources are notebooks

        whole = program(source.text, name)
        observation = whole.in_cells(observe_source(whole.code.text, name, beside=beside))
        judgement = whole.in_lines(_judged(observation, name, config))
        found = whole.in_cells(tuple(_with_others(judgement, whole.code, name, config)))
    else:
        observation = observe_source(source.text, name, finder(name), beside)
        judgement = _judged(observation, name, config)
        if beside is not None:
            judgement = (*judgement, *told_by_callers(name, source.text, config.codes(name), beside))
        found = tuple(_with_others(judgement, source, name, config))
    if not observation.cases and not observation.gaps and not found:
        return Examined()
    looked_at = judged([observation], found)
    return Examined(found, looked_at.topics, looked_at.checklist)


def _judged(observation: Observation, name: str, config: Config) -> tuple[Finding, ...]:
    # Which rules there are is not asked for a file that shows nothing, as most files of a project.
    return judge([observation], config.codes(name)) if observation.cases else ()


def _with_others(
    found: tuple[Finding, ...], source: SourceText, name: str, config: Config
) -> Iterator[Finding]:
    """What is found in this file, and in the modules it imports from as far as they may be judged."""
    for finding in found:
        path = finding.location.path if finding.location else name
        if path == name:
            yield from _finished((finding,), source)
        elif finding.code in config.codes(path) and not config.excludes(path):
            fix = replace(finding.fix, changes=()) if finding.fix else None
            yield from without_ignored([replace(finding, fix=fix)], read_source(path).text)


def _finished(found: tuple[Finding, ...], code: SourceText) -> tuple[Finding, ...]:
    """What no comment silences, with the edits that the source allows."""
    from gradclinic.linting.repairs import with_edits  # most files have nothing to repair

    return with_edits(without_ignored(found, code.text), code)

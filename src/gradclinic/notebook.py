"""`%load_ext gradclinic`, then `%%checkup` on a cell: it runs as it is and is diagnosed."""

from __future__ import annotations

import linecache
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from IPython.display import display

from gradclinic.config import Config, nearest
from gradclinic.engine import judge
from gradclinic.errors import UsageError
from gradclinic.facts import Location
from gradclinic.findings import Diagnosis, Finding, Summary
from gradclinic.ignores import without_ignored
from gradclinic.judged import judged
from gradclinic.runtime import Recording

Shell = Any
"""IPython's InteractiveShell, whose methods are typed in part and partly wrong."""


def load_ipython_extension(shell: Shell) -> None:
    """What `%load_ext gradclinic` calls."""
    shell.register_magic_function(_checkup(shell), magic_kind="cell", magic_name="checkup")


def _checkup(shell: Shell) -> Callable[[str, str], None]:
    def checkup(line: str, cell: str) -> None:
        """Run the cell as it is, watch what it trains, and show what is wrong with it.

        Objects made in earlier cells are followed from here on. The cell's own results and errors
        appear as ever.
        """
        if line.strip():
            raise UsageError(f"%%checkup takes no arguments, and was given {line.strip()!r}")
        display(_diagnosis(shell, _as_seen(cell)))  # type: ignore[no-untyped-call]

    return checkup


def _as_seen(cell: str) -> str:
    """The cell with its first line, so that lines count as the user counts them."""
    return cell if cell.startswith("%%") else f"# %%checkup\n{cell}"


def _diagnosis(shell: Shell, cell: str) -> Diagnosis:
    recording = Recording()
    # Another cell may step, schedule or save what this one only prepared.
    recording.complete = False
    started = time.monotonic()
    with recording:
        ran = shell.run_cell(cell)
    elapsed = round(time.monotonic() - started, 3)
    config = nearest([])
    observation = recording.observation()
    here = _Cell(shell, cell, ran.execution_count)
    findings = here.wanted(judge([observation], config.codes()), config)
    looked_at = judged([observation], findings)
    return Diagnosis(
        command="checkup",
        target=here.name,
        findings=findings,
        judged=looked_at.topics,
        checklist=looked_at.checklist,
        summary=Summary(steps=recording.steps, elapsed_s=elapsed),
        problems=recording.problems,
    )


class _Cell:
    """The cell under examination, and how places in it and in others are called."""

    def __init__(self, shell: Shell, text: str, ran_as: int) -> None:
        self._shell = shell
        self._text = text
        # IPython counts on before it runs a cell, so ours ran under the number of the next.
        self._ran_as = ("Cell", f"In[{ran_as}]")
        self.name = f"Cell In[{len(shell.history_manager.input_hist_raw) - 1}]"

    def wanted(self, findings: tuple[Finding, ...], config: Config) -> tuple[Finding, ...]:
        """Without what the project or a comment in the cell silences."""
        kept: list[Finding] = []
        for finding in findings:
            where = finding.location and self._named(finding.location)
            silenced = where and where.path == self.name and not without_ignored([finding], self._text)
            if not silenced and finding.code in config.codes(where.path if where else ""):
                kept.append(replace(finding, location=where))
        return tuple(kept)

    def _named(self, where: Location) -> Location:
        """`Cell In[3]` in place of the file that IPython pretends a cell to be."""
        parts = self._shell.compile.format_code_name(where.path)
        if parts is None:
            return where
        name = self.name if parts == self._ran_as else " ".join(parts)
        # Excerpts look their source up by the name a place has.
        lines = linecache.getlines(where.path)
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
        return replace(where, path=name)

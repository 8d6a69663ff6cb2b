"""The commands as tools of the Model Context Protocol.

Every call is the command itself in a process of its own: what a script prints cannot reach the
protocol on our standard output, and a script that dies or hangs takes nothing with it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import anyio.abc
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from gradclinic import __version__
from gradclinic.child import command_line, environment

INSTRUCTIONS = """\
Says why a PyTorch training run does not learn, blows up or changes when compiled.
Start with lint, which executes nothing. Then run the training script for some steps. Read the first
finding: it is the likeliest cause. A finding with `explained_by` is a symptom and needs no remedy of
its own. Call explain on a code before proposing a change: its page names the tempting wrong fix.
A check whose state is "not seen" was not judged; no finding there is no proof of health."""

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
EXECUTES = ToolAnnotations(read_only_hint=False, open_world_hint=True)
GRACE_S = 20.0
"""For an interrupted script to unwind and its diagnosis to be written."""
LAST_LINES = 40


def server(experiments: Sequence[str]) -> MCPServer:
    """The server, to be run on stdio; `experiments` are the kinds of probe there are."""
    served = MCPServer("gradclinic", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    served.add_tool(lint, annotations=READS)
    served.add_tool(run, annotations=EXECUTES)
    served.add_tool(
        probe, description=f"{probe.__doc__}\n\nExperiments: {', '.join(experiments)}.", annotations=EXECUTES
    )
    served.add_tool(explain, annotations=READS)
    return served


async def lint(
    paths: list[str], directory: str = ".", select: list[str] | None = None, timeout_s: float = 120
) -> dict[str, Any]:
    """Find training bugs in source code without executing it: Python files and directories of them.

    `select` keeps to some rules: codes, names or prefixes such as GC1.
    """
    done = await _command(
        ["lint", *_selected(select)], _operands(paths or ["."]), directory=directory, timeout_s=timeout_s
    )
    return done.document


async def run(
    script: str,
    arguments: list[str] | None = None,
    module: bool = False,
    steps: int = 100,
    directory: str = ".",
    select: list[str] | None = None,
    timeout_s: float = 600,
) -> dict[str, Any]:
    """Execute a training script, unmodified, and say what is wrong with its training.

    Ends it cleanly after `steps` optimizer steps, or after `timeout_s` with what was seen until then.
    With `module`, `script` is a module as for `python -m`. `script` in the answer tells how it ended.
    """
    done = await _command(
        ["run", "--steps", str(steps), *_selected(select)],
        [*(["-m"] if module else []), *_operands([script]), *(arguments or [])],
        directory=directory,
        timeout_s=timeout_s,
    )
    return {**done.document, "script": {"exit_code": done.code, "last_lines": done.last_lines}}


async def probe(
    experiment: str, target: str, directory: str = ".", budget_s: int = 60, select: list[str] | None = None
) -> dict[str, Any]:
    """Make an experiment on a model. `target` is `file.py:function`, which returns a gradclinic.Case."""
    done = await _command(
        ["probe", *_operands([experiment]), "--budget", f"{budget_s}s", *_selected(select)],
        _operands([target]),
        directory=directory,
        timeout_s=budget_s + 120,
    )
    return done.document


async def explain(rule: str = "") -> dict[str, Any]:
    """What a rule finds, why it hurts, what to do and what not to do instead; bare, all rules in short."""
    with _scratch() as scratch:
        words = ["explain", "--format", "json", *_operands([rule] if rule else [])]
        code = await _process(words, scratch, directory=".", timeout_s=60)
        if code != 0:
            raise ToolError(_complaint(scratch))
        said = json.loads((scratch / "output").read_text(encoding="utf-8"))
    if rule:
        return dict(said)
    kept = ("code", "name", "severity", "family", "summary")
    return {"rules": [{key: one[key] for key in kept} for one in said]}


@dataclass(frozen=True)
class _Done:
    code: int
    document: dict[str, Any]
    last_lines: list[str]


async def _command(
    words: Sequence[str], operands: Sequence[str], *, directory: str, timeout_s: float
) -> _Done:
    """The document that `gradclinic WORDS… OPERANDS…` writes, or its complaint as the tool's error."""
    with _scratch() as scratch:
        report = scratch / "report.json"
        shared = ["--format", "json", "--output", str(report), "--fail-on", "never"]
        code = await _process([*words, *shared, *operands], scratch, directory=directory, timeout_s=timeout_s)
        if not report.exists():
            stopped = f"nothing came out of it within {timeout_s:g} s" if code < 0 else "it wrote no report"
            raise ToolError(_complaint(scratch) or stopped)
        return _Done(code, json.loads(report.read_text(encoding="utf-8")), _last_lines(scratch))


async def _process(words: Sequence[str], scratch: Path, *, directory: str, timeout_s: float) -> int:
    if not os.path.isdir(directory):
        raise ToolError(f"{directory} is no directory")
    # A file takes what a pipe would make us keep in memory, however much a script prints.
    with (scratch / "output").open("wb") as output, (scratch / "errors").open("wb") as errors:
        process = await anyio.open_process(
            command_line(*words),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            cwd=directory,
            env={**environment(), "PYTHONIOENCODING": "utf-8"},
            start_new_session=True,
        )
        try:
            return await _ending(process, timeout_s)
        finally:
            _kill(process)


async def _ending(process: anyio.abc.Process, timeout_s: float) -> int:
    with anyio.move_on_after(timeout_s):
        return await process.wait()
    # An interrupted script is still diagnosed, from what it did so far.
    process.send_signal(signal.SIGINT)
    with anyio.move_on_after(GRACE_S):
        return await process.wait()
    _kill(process)
    return await process.wait()


def _kill(process: anyio.abc.Process) -> None:
    """The process and whatever it has started: data loader workers outlive a script that was killed."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


@contextmanager
def _scratch() -> Iterator[Path]:
    with TemporaryDirectory(prefix="gradclinic-mcp-") as path:
        yield Path(path)


def _operands(words: Sequence[str]) -> list[str]:
    """Paths, targets and names; an option in their place would make a reading tool write."""
    for word in words:
        if not word or word.startswith("-"):
            raise ToolError(f"{word!r} is no path, target or name; options are arguments of the tool")
    return list(words)


def _selected(rules: Sequence[str] | None) -> list[str]:
    return [f"--select={rule}" for rule in rules or ()]


def _complaint(scratch: Path) -> str:
    lines = (scratch / "errors").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("gradclinic: ") if lines else ""


def _last_lines(scratch: Path) -> list[str]:
    """The end of what a script wrote to each stream, errors last."""
    return [
        line
        for name in ("output", "errors")
        for line in (scratch / name).read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
    ]

"""Running a script or a module in this process as `python` would, and how that ended."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, TracebackType

import gradclinic
from gradclinic.errors import GradclinicError, UsageError
from gradclinic.runtime.patching import UNSEEN
from gradclinic.runtime.recorder import StopTraining
from gradclinic.runtime.recording import Recording

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Program:
    """What `python SCRIPT` or `python -m MODULE` would run."""

    target: str
    is_module: bool = False

    @property
    def own(self) -> str:
        """The file or package that is the user's code wherever it is installed."""
        if not self.is_module:
            return self.target
        top = PathFinder.find_spec(self.target.partition(".")[0], [os.getcwd(), *sys.path])
        place = None if top is None else next(iter(top.submodule_search_locations or ()), top.origin)
        if place is None:
            raise UsageError(f"there is no module {self.target}, looked for from {os.getcwd()}")
        return place


def execute(program: Program, arguments: Sequence[str], recording: Recording) -> int:
    """Run it as `__main__` under observation; returns its exit code.

    `__main__`, sys.argv and sys.path stay as the program had them: what it registered to run at exit
    still needs them.
    """
    sys.argv[:] = [program.target, *arguments]
    try:
        with recording:
            _run(program)
    except GradclinicError:
        raise
    except StopTraining:
        return 0
    except SystemExit as ending:
        return _exit_code(ending, recording)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException as error:
        _without_our_frames(error)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _run(program: Program) -> None:
    main = ModuleType("__main__")
    if program.is_module:
        _put_on_path(os.getcwd())
        spec = _found(program.target)
        assert isinstance(spec.loader, SourceFileLoader)
        main.__spec__, main.__package__ = spec, spec.parent
        file = sys.argv[0] = spec.loader.path
    else:
        _put_on_path(os.path.dirname(os.path.realpath(program.target)))
        main.__spec__, main.__package__ = None, None
        file = os.path.abspath(program.target)
    main.__file__ = file
    main.__loader__ = SourceFileLoader("__main__", file)
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    exec(compile(Path(file).read_bytes(), file, "exec", dont_inherit=True), main.__dict__)


def _put_on_path(directory: str) -> None:
    """In the place of the directory this command was started from, as `python` would have it."""
    if not sys.flags.safe_path:
        sys.path[0:1] = [directory]


def _found(name: str) -> ModuleSpec:
    """The module to run; its parent packages are imported, under observation, as `python -m` does."""
    spec = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = find_spec(f"{name}.__main__")
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise UsageError(f"there is no module {name} with source that could be run")
    return spec


def _exit_code(ending: SystemExit, recording: Recording) -> int:
    if ending.code is None or ending.code == 0:
        recording.complete = True
        return 0
    if isinstance(ending.code, int):
        return ending.code & 0xFF or 1
    print(ending.code, file=sys.stderr)
    return 1


def _without_our_frames(error: BaseException) -> None:
    """The traceback as it would be had the program run by itself, in the errors behind it too."""
    todo, seen = [error], set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _stripped(one.__traceback__)
        todo.extend(other for other in (one.__cause__, one.__context__) if other is not None)
        if isinstance(one, BaseExceptionGroup):
            todo.extend(one.exceptions)


def _stripped(trace: TracebackType | None) -> TracebackType | None:
    kept = []
    while trace is not None:
        if not _is_ours(trace.tb_frame.f_code.co_filename):
            kept.append(trace)
        trace = trace.tb_next
    if not kept:
        return None
    for one, following in zip(kept, [*kept[1:], None], strict=True):
        one.tb_next = following
    return kept[0]


def _is_ours(filename: str) -> bool:
    return filename == UNSEEN or filename.startswith(_PACKAGE)


_PACKAGE = os.path.join(os.path.dirname(gradclinic.__file__), "runtime") + os.sep

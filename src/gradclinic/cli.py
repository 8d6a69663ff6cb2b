"""The `gradclinic` command: finds the subcommand's module and turns every error into one line."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from gradclinic import __doc__ as about
from gradclinic import __version__, commands
from gradclinic.errors import GradclinicError, UsageError, debugging, fault


def entry() -> NoReturn:
    """The command as a process of its own. `lint` leaves all it has made to the system when it is done:
    Python takes a tenth of the time to take it apart."""
    ends_at_once = sys.argv[1:2] == ["lint"]
    if ends_at_once:
        gc.disable()
    code = main()
    if ends_at_once:
        with contextlib.suppress(OSError):  # which Python tells of when it tries again
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
            os._exit(code)
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(words)
    except GradclinicError as error:
        print(f"gradclinic: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader (`head`, a pager) has seen enough; nothing may complain while Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("gradclinic: interrupted", file=sys.stderr)
        return 2
    except Exception as error:
        if debugging():
            raise
        print(f"gradclinic: {fault(error)}", file=sys.stderr)
        return 2


def _dispatch(words: list[str]) -> int:
    names = command_names()
    if words and words[0] in names:
        module = _command(words[0])
        parser = _Parser(prog=f"gradclinic {words[0]}", description=module.__doc__)
        module.add_arguments(parser)
        code: int = module.run(parser.parse_args(words[1:]))
        return code
    if words and not words[0].startswith("-"):
        from difflib import get_close_matches  # slow to import, and most words are commands

        near = get_close_matches(words[0], names, n=1)
        raise UsageError(
            f"there is no command {words[0]!r}"
            + (
                f"; did you mean `gradclinic {near[0]}`?"
                if near
                else f"; the commands are {', '.join(names)}"
            )
        )
    return _overview(words, names)


def _overview(words: list[str], names: list[str]) -> int:
    parser = _Parser(prog="gradclinic", description=about)
    parser.add_argument("--version", action="version", version=f"gradclinic {__version__}")
    listing = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in names:
        listing.add_parser(name, help=(_command(name).__doc__ or "").partition("\n")[0].rstrip("."))
    parser.epilog = "`gradclinic COMMAND --help` tells more about one of them."
    parser.parse_args(words)
    parser.print_help(sys.stderr)
    return 2


def command_names() -> list[str]:
    """One module of `commands` per command; those whose name starts with _ are shared parts."""
    return [info.name for info in pkgutil.iter_modules(commands.__path__) if not info.name.startswith("_")]


def _command(name: str) -> ModuleType:
    return import_module(f"{commands.__name__}.{name}")


def _help_formatter(prog: str) -> argparse.HelpFormatter:
    """argparse makes one for every argument, and would load shutil to ask for the width of the terminal."""
    try:
        width = int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size().columns
    except (ValueError, OSError):
        width = 80
    return argparse.RawDescriptionHelpFormatter(prog, width=width - 2)


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_help_formatter, **options)

    def error(self, message: str) -> NoReturn:
        """argparse would print the whole usage first; the line that matters goes alone."""
        raise UsageError(f"{message} (`{self.prog} --help` shows what it takes)")

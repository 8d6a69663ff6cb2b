"""Make an experiment on a model: what reaches its parameters, what compiling changes, whether it learns.

The target is a function that returns a gradclinic.Case: `file.py:function`, or
`package.module:function`. The case's own objects come out of every experiment as they went in.

    gradclinic probe flow case.py:make
    gradclinic probe compile case.py:make --write-test tests/test_gradients.py

Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import pkgutil
import time
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from gradclinic import probes
from gradclinic.commands._progress import progress
from gradclinic.commands._shared import add_shared_arguments, config_for, emit, exit_code
from gradclinic.engine import judge
from gradclinic.errors import UsageError
from gradclinic.findings import Check, Diagnosis, State, Summary
from gradclinic.judged import judged


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(title="experiments", metavar="EXPERIMENT", dest="kind", required=True)
    torch_is_here = find_spec("torch") is not None
    for name in kind_names():
        module = _kind(name) if torch_is_here else None
        about = (module.__doc__ if module else None) or ""
        one = kinds.add_parser(name, help=about.partition("\n")[0], description=about)
        one.add_argument("target", metavar="TARGET", help="file.py:function or package.module:function")
        one.add_argument("--budget", metavar="TIME", help="the most it may take, such as 60s or 5m")
        add_shared_arguments(one)
        if module is not None:
            module.add_arguments(one)


def run(args: argparse.Namespace) -> int:
    if find_spec("torch") is None:
        raise UsageError("probe needs PyTorch; install torch where gradclinic is installed")
    from gradclinic.case import Case
    from gradclinic.commands._careful import careful, on_one_device
    from gradclinic.probes._budget import Budget, seconds
    from gradclinic.target import load_target

    module = _kind(args.kind)
    limit = seconds(args.budget) if args.budget else getattr(module, "BUDGET", 60.0)
    config = config_for(args, [args.target.rpartition(":")[0]])
    case = load_target(args.target, getattr(module, "ACCEPTS", (Case,)))
    if isinstance(case, Case):
        on_one_device(case)
    started = time.monotonic()
    with progress(quiet=args.quiet) as tell:
        outcome = careful(module.run, case, args, Budget(limit, tell))
    observations = [outcome.observation()]
    findings = judge(observations, config.codes())
    diagnosis = Diagnosis(
        command=f"probe {args.kind}",
        target=args.target,
        findings=findings,
        judged=_asked(judged(observations, findings).topics, outcome.gaps),
        summary=Summary(steps=outcome.steps, elapsed_s=round(time.monotonic() - started, 3)),
        tables=outcome.tables,
        conclusion=outcome.conclusion,
        measured=outcome.measured(),
    )
    if outcome.picture and args.format == "text" and not args.quiet and not args.output:
        print(outcome.picture, end="\n\n")
    emit(diagnosis, args)
    return exit_code(diagnosis, config)


def _asked(topics: tuple[Check, ...], gaps: Mapping[str, str]) -> tuple[Check, ...]:
    """An experiment answers its own question; that it did not ask the others is no news."""
    return tuple(check for check in topics if check.state is not State.NOT_SEEN or check.check in gaps)


def kind_names() -> list[str]:
    """One module of `probes` per experiment; `outcome` and those that start with _ are shared parts."""
    found = (info.name for info in pkgutil.iter_modules(probes.__path__))
    return [name for name in found if not name.startswith("_") and name != "outcome"]


def _kind(name: str) -> ModuleType:
    return import_module(f"{probes.__name__}.{name}")

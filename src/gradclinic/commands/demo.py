"""Show gradclinic at work on bundled patients, sick and healthy.

gradclinic demo                     the tour: reads, runs and probes a few of them
gradclinic demo clip_after_step     one of them
gradclinic demo --list              all of them
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from gradclinic.child import command_line, environment
from gradclinic.errors import GradclinicError, UsageError
from gradclinic.gallery import Patient, patients

TOUR = (
    "clip_after_step",
    "missing_zero_grad",
    "clip_scaled_gradients",
    "compiled_force_field",
    "healthy_classifier",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("patient", nargs="?", metavar="PATIENT", help="one of --list (default: the tour)")
    parser.add_argument("--list", action="store_true", help="list the patients")


def run(args: argparse.Namespace) -> int:
    everyone = {patient.name: patient for patient in patients()}
    if args.list:
        print("\n".join(_listing(tuple(everyone.values()))))
        return 0
    if args.patient and args.patient not in everyone:
        near = get_close_matches(args.patient, everyone, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UsageError(f"no patient is called {args.patient!r}{hint}; `gradclinic demo --list` lists them")
    shown = [everyone[args.patient]] if args.patient else [everyone[name] for name in TOUR]
    # A copy in an empty directory keeps paths short and whatever a run leaves behind out of the package.
    with TemporaryDirectory(prefix="gradclinic-demo-") as ward:
        for patient in shown:
            _visit(patient, Path(ward))
    if not args.patient:
        print("Now on your own code:  gradclinic lint .   and   gradclinic run train.py")
    return 0


def _listing(everyone: Sequence[Patient]) -> Iterator[str]:
    width = max(len(patient.name) for patient in everyone)
    for patient in everyone:
        yield f"{patient.name:<{width}}  {patient.finding or 'healthy'}\n    {patient.complaint}"


def _visit(patient: Patient, ward: Path) -> None:
    patient.come_to(ward)
    print(f"━━ {patient.name} ".ljust(79, "━"))
    print(patient.complaint)
    if patient.story:
        print(f"\n{patient.story}")
    print()
    for words in patient.examinations:
        if words[0] != "lint" and find_spec("torch") is None:
            print(f"torch is not installed here, so there is no `gradclinic {words[0]}`\n")
        else:
            _command(words, patient, ward)


def _command(words: Sequence[str], patient: Patient, ward: Path) -> None:
    """One gradclinic command as a user would type it, its output going where ours goes."""
    print(f"$ gradclinic {' '.join(words)}", flush=True)
    done = subprocess.run(
        command_line(*words),
        cwd=ward,
        env=environment(),
        stderr=subprocess.STDOUT,
        check=False,
    )
    print(flush=True)
    if done.returncode != (1 if patient.finding else 0):
        expected = patient.finding or "nothing"
        raise GradclinicError(
            f"{words[0]} was to find {expected} in {patient.name} and ended with {done.returncode}"
        )

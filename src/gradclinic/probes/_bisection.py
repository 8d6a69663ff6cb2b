"""Why a variant is wrong: make it again with one thing changed, until the fault goes away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gradclinic.case import Case
from gradclinic.compile.lifting import tensors
from gradclinic.compile.proof import one_line
from gradclinic.facts.variants import Trial, TrialKind, VariantReport
from gradclinic.probes._constants import OwnConstants
from gradclinic.probes._interception import Change, Seen, intercepted
from gradclinic.probes._measure import Measured, compare, measure
from gradclinic.probes._own_graph import OwnGraph, own_graph, sliced_scatter
from gradclinic.probes._where import function_line

Build = Callable[..., Callable[..., Any]]
BACKENDS = ("eager", "aot_eager")
"""Tried in place of the user's. If both are right the fault is in what comes after them; inductor
compiles for long and would tell nothing new."""


@dataclass
class Attempt:
    report: VariantReport
    seen: Seen
    measured: Measured | None


class Suspect:
    """A variant of the user's own, with what it should have given."""

    def __init__(self, case: Case, name: str, build: Build, reference: Measured, tolerance: float) -> None:
        self.case, self.name, self.build = case, name, build
        self.reference, self.tolerance = reference, tolerance

    def attempt(self, change: Change | None = None) -> Attempt:
        """Make and run it, with one thing changed or as it is; an error is a result too."""
        with intercepted(change or Change()) as seen:
            try:
                variant = self.build(self.case.model)
                measured = measure(self.case, variant)
            except Exception as error:  # the user's code, torch's compilers: all of it becomes a row
                return Attempt(self._report(seen, error=one_line(error)), seen, None)
        terms, values = compare(self.case, self.reference, measured)
        return Attempt(self._report(seen, terms=terms, values=values), seen, measured)

    def _report(self, seen: Seen, **found: Any) -> VariantReport:
        where = seen.traced_at or seen.compiled_at or function_line(self.build)
        return VariantReport(self.name, own=True, backend=", ".join(seen.backends), where=where, **found)

    def cured(self, change: Change) -> tuple[bool, str]:
        report = self.attempt(change).report
        return report.agrees(self.tolerance), report.error


def bisect(suspect: Suspect, wrong: Attempt, progress: Callable[[str], None]) -> tuple[Trial, ...]:
    """The trials made, the decisive one last."""
    trials: list[Trial] = []
    own = own_graph(suspect.case)
    sliced = _slice(suspect, wrong, own)
    if sliced is not None:
        return (sliced,)
    outputs = [gap for gap in wrong.report.wrong_values(suspect.tolerance) if gap.kind == "output"]
    if outputs and all(gap.only_scaled for gap in outputs):
        return ()
    backend = None
    if wrong.seen.backends:
        progress("without torch.compile")
        bare = _trial(suspect, wrong, TrialKind.NO_BACKEND, "torch.compile left out", Change(backend="none"))
        trials.append(bare)
        if bare.cured:
            return (*trials, *_backends(suspect, wrong, progress))
        backend = "none"
    if wrong.seen.traced_at is not None:
        trials += _tracing(suspect, wrong, Change(backend), own, progress)
    return tuple(trials)


def _tracing(
    suspect: Suspect, wrong: Attempt, base: Change, own: OwnGraph | None, progress: Callable[[str], None]
) -> list[Trial]:
    """What went wrong while the user traced; two things at once if no single one explains it."""
    constants = OwnConstants(suspect.case.model, own)
    changes: dict[TrialKind, dict[str, Any]] = {
        TrialKind.SAVED_TENSORS: {"reconnect": True},
        TrialKind.TRAIN_MODE: {"train": suspect.case.model},
        TrialKind.ENTRY: {"entry": True},
        TrialKind.CONSTANTS: {"edit": constants},
    }
    trials = []
    for kind, change in changes.items():
        progress(kind.value)
        trial = _trial(suspect, wrong, kind, kind.value, replace(base, **change))
        trials.append(_detailed(trial, wrong, constants))
        if trial.cured:
            return trials
    progress("all of these together")
    everything = {key: value for change in changes.values() for key, value in change.items()}
    if not suspect.cured(replace(base, **everything))[0]:
        return trials
    together = []
    for kind, change in changes.items():
        progress(f"all but {kind.value}")
        rest = {key: value for key, value in everything.items() if key not in change}
        needed = not suspect.cured(replace(base, **rest))[0]
        told = Trial(kind, f"{kind.value}, with the others", needed, where=wrong.seen.traced_at)
        together.append(_detailed(told, wrong, constants))
    return trials + together


def _detailed(trial: Trial, wrong: Attempt, constants: OwnConstants) -> Trial:
    if trial.kind is TrialKind.SAVED_TENSORS:
        return replace(trial, detail=f"{wrong.seen.saved} recorded detach operations")
    if trial.kind is TrialKind.CONSTANTS:
        listed = "; ".join(dict.fromkeys(constants.replaced))
        return replace(trial, detail=listed, where=constants.where or trial.where)
    return trial


def _backends(suspect: Suspect, wrong: Attempt, progress: Callable[[str], None]) -> list[Trial]:
    """Which of torch's backends do it right; the user's own is known not to."""
    trials = []
    for backend in BACKENDS:
        if backend in wrong.seen.backends:
            continue
        progress(f"backend {backend}")
        trials.append(_trial(suspect, wrong, TrialKind.BACKEND, backend, Change(backend=backend)))
    return trials


def _trial(suspect: Suspect, wrong: Attempt, kind: TrialKind, what: str, change: Change) -> Trial:
    cured, error = suspect.cured(change)
    backend = kind in (TrialKind.NO_BACKEND, TrialKind.BACKEND)
    where = wrong.seen.compiled_at if backend else wrong.seen.traced_at
    return Trial(kind, what, cured, error=error, where=where)


def _slice(suspect: Suspect, wrong: Attempt, own: OwnGraph | None) -> Trial | None:
    if own is None or wrong.measured is None:
        return None
    theirs = tensors(wrong.measured.outputs)
    for gap in wrong.report.wrong_values(suspect.tolerance):
        if gap.kind == "output" and gap.name in own.names and gap.name in theirs and not gap.only_scaled:
            found = sliced_scatter(own, gap.name, theirs[gap.name], suspect.tolerance)
            if found is not None:
                return found
    return None

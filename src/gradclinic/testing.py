"""Assertions about training, for tests: each is an experiment, and a failure reads like a diagnosis.

    from gradclinic.testing import assert_learns

    def test_the_model_can_learn():
        assert_learns(Case(model, batch, loss))

The pytest plugin offers them all as the fixture `training`. Nothing here imports torch before an
assertion is called.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

from gradclinic.engine import judge
from gradclinic.facts import Observation, Source
from gradclinic.findings import Diagnosis, Finding
from gradclinic.reporters import report

if TYPE_CHECKING:
    from gradclinic.case import Case
    from gradclinic.probes._training import Training
    from gradclinic.probes.accumulate import Window


def assert_learns(case: Case, *, steps: int = 400, budget: float = 60.0) -> None:
    """The model can learn its one batch by heart, and learns it with the case's own optimizer."""
    __tracebackhide__ = True
    from gradclinic.facts.fitting import Fit
    from gradclinic.probes import overfit
    from gradclinic.probes._budget import Budget
    from gradclinic.probes._reach import reach
    from gradclinic.probes.batch import independence

    found = overfit.overfit(case, Budget(budget), steps)
    if found.own.fit in (Fit.STUCK, Fit.DIVERGES):
        _fail(overfit.conclusion(found), [reach(case), found, independence(case)])


def assert_gradients_flow(case: Case) -> None:
    """Every trainable parameter gets a gradient, and none is zero step after step."""
    __tracebackhide__ = True
    from gradclinic.probes._reach import reach

    found = reach(case)
    _check(f"{found.reached} of {len(found.parameters)} trainable parameters get a gradient", [found])


def assert_all_parameters_update(case: Case, *, only: str = "*", steps: int = 3) -> None:
    """Every trainable parameter whose name matches `only` moves under the case's optimizer."""
    __tracebackhide__ = True
    from gradclinic.probes._moves import moved
    from gradclinic.probes._reach import reach

    still = [name for name, did in moved(case, steps, decay=False).items() if not did and fnmatch(name, only)]
    trainable = [name for name in still if name in case.parameters()]
    if trainable:
        _fail(f"{len(trainable)} parameters did not move in {steps} steps: {_some(trainable)}", [reach(case)])


def assert_frozen_stay(case: Case, names: Iterable[str] = (), *, steps: int = 3) -> None:
    """What is frozen, and whatever matches one of `names`, keeps every bit; statistics included."""
    __tracebackhide__ = True
    from gradclinic.probes._moves import frozen, moved

    watched = frozen(case)
    patterns = list(names)
    drifted = [
        name
        for name, did in moved(case, steps).items()
        if did and (name in watched or any(fnmatch(name, pattern) for pattern in patterns))
    ]
    if drifted:
        _fail(f"{len(drifted)} frozen tensors changed in {steps} steps: {_some(drifted)}", [])


def assert_samples_independent(case: Case, *, dim: int = 0) -> None:
    """No sample's output depends on the other samples of its batch, batch-norm in training aside."""
    __tracebackhide__ = True
    from gradclinic.probes import batch

    found = batch.independence(case, dim)
    if found.mixed or found.unjudged:
        _fail(batch.conclusion(found), [found])


def assert_accumulation_matches(case: Case, window: Window | None = None, *, parts: int = 4) -> None:
    """Micro-batches, as `window(model, micro_batches)` accumulates them, give the big batch's gradient."""
    __tracebackhide__ = True
    from gradclinic.probes import accumulate

    found = accumulate.accumulation(case, parts, window)
    if not found.matches:
        _fail(accumulate.conclusion(found), [found])


def assert_resumes_exactly(make: Callable[[], Case | Training] | Case, *, steps: int = 3) -> None:
    """Training goes on after a reload as if nothing had happened, bit for bit."""
    __tracebackhide__ = True
    from gradclinic.probes import resume

    found = resume.resume(make, steps=steps)
    if not found.exact:
        _fail(resume.conclusion(found), [found])


def assert_deterministic(make: Callable[[], Case] | Case, *, steps: int = 3) -> None:
    """Two runs from one seed agree bit by bit."""
    __tracebackhide__ = True
    from gradclinic.probes import deterministic

    found = deterministic.repeat(make, steps=steps)
    if not found.same:
        _fail(deterministic.conclusion(found), [found])


def assert_initial_loss(case: Case) -> None:
    """The first loss is near what chance gives."""
    __tracebackhide__ = True
    from gradclinic.probes import init

    found = init.initial_loss(case)
    _check(init.conclusion(found), [found])


def assert_data_sound(case: Case, *, budget: float = 60.0) -> None:
    """Labels belong to their inputs, reading does not write, workers draw their own randomness."""
    __tracebackhide__ = True
    from gradclinic.probes import data
    from gradclinic.probes._budget import Budget

    stored, workers = data.stored_data(case), data.worker_randomness(case)
    labels = data.label_alignment(case, Budget(budget))
    facts = [fact for fact in (stored, workers, labels) if fact is not None]
    _check(data.conclusion(stored, workers, labels), facts)


def assert_compiled_matches(case: Case) -> None:
    """Each variant of the case, or the model under torch.compile, gives eager's outputs and gradients."""
    __tracebackhide__ = True
    from gradclinic.probes._compile_tables import conclusion
    from gradclinic.probes.compile import probe_compile

    found = probe_compile(case, tuple(case.variants or ("torch.compile",)))
    _check(conclusion(found), [found])


def assert_finite(case: Case) -> None:
    """Parameters, outputs, loss and gradients hold no NaN and no infinity."""
    __tracebackhide__ = True
    from gradclinic.probes._values import nonfinite

    found = nonfinite(case)
    if found:
        _fail(f"not finite: {_some(found)}", [])


def assert_outputs_within(case: Case, low: float, high: float) -> None:
    """Every entry of the model's outputs lies in [low, high]."""
    __tracebackhide__ = True
    from gradclinic.probes._values import output_range

    least, most = output_range(case)
    if not (low <= least and most <= high):
        _fail(f"the outputs range from {least:.4g} to {most:.4g}, expected [{low:g}, {high:g}]", [])


def assert_on_device(case: Case, device: str) -> None:
    """Every parameter and buffer lives on `device`: "cpu", "cuda", "cuda:1"."""
    __tracebackhide__ = True
    named = [*case.model.named_parameters(), *case.model.named_buffers()]
    away = [name for name, tensor in named if not str(tensor.device).startswith(device)]
    if away:
        _fail(f"{len(away)} tensors are not on {device}: {_some(away)}", [])


def assert_trains_soundly(train: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Run a training function as it is, watched; what is wrong with its loop fails with code and line."""
    __tracebackhide__ = True
    from gradclinic.probes._where import function_line
    from gradclinic.runtime import Recording

    place = function_line(train)
    with Recording(own=[place.path] if place else []) as recording:
        made = train(*args, **options)
    observation = recording.observation()
    found = judge([observation])
    if any(finding.severity != "info" for finding in found):
        _fail(f"{recording.steps} steps of training were watched", [], found)
    return made


def _check(conclusion: str, facts: list[Any]) -> None:
    """Fail when a rule has anything above advice to say about these facts."""
    __tracebackhide__ = True
    found = _findings(facts)
    if any(finding.severity != "info" for finding in found):
        _fail(conclusion, [], found)


def _findings(facts: list[Any]) -> tuple[Finding, ...]:
    return judge([Observation(Source.PROBE, tuple((fact,) for fact in facts))])


def _fail(conclusion: str, facts: list[Any], found: tuple[Finding, ...] | None = None) -> None:
    __tracebackhide__ = True
    findings = _findings(facts) if found is None else found
    written = io.StringIO()
    report("text", Diagnosis("probe", "", findings), written, pages={}) if findings else None
    raise AssertionError("\n\n".join(part for part in (conclusion, written.getvalue().rstrip()) if part))


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

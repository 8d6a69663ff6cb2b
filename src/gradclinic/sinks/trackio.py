"""trackio: scalars, histograms, alerts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from gradclinic.errors import UsageError
from gradclinic.findings import Finding, Severity
from gradclinic.sinks._sink import alert_name, alert_text


def around(target: Any) -> Trackio:
    if isinstance(target, ModuleType):
        from trackio.context_vars import current_run

        target = current_run.get()
        if target is None:
            raise UsageError("trackio has no run; call trackio.init() before, or give the run")
    return Trackio(target, own=False)


def opened(project: str) -> Trackio:
    import trackio

    return Trackio(trackio.init(project or "gradclinic"), own=True)


class Trackio:
    def __init__(self, run: Any, *, own: bool) -> None:
        self._run = run
        self._own = own

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def histogram(self, step: int, name: str, values: Sequence[float]) -> None:
        import trackio

        self._run.log({name: trackio.Histogram(list(values))}, step=step)

    def alert(self, step: int, finding: Finding) -> None:
        import trackio

        levels = {
            Severity.ERROR: trackio.AlertLevel.ERROR,
            Severity.WARNING: trackio.AlertLevel.WARN,
            Severity.INFO: trackio.AlertLevel.INFO,
        }
        self._run.alert(alert_name(finding), alert_text(finding), levels[finding.severity], step)

    def close(self) -> None:
        if self._own:
            self._run.finish()

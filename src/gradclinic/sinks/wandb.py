"""Weights & Biases: scalars, histograms, alerts; our own run is offline unless WANDB_MODE differs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from gradclinic.errors import UsageError
from gradclinic.findings import Finding, Severity
from gradclinic.sinks._sink import PREFIX, alert_name, alert_text

_STEP = PREFIX + "step"


def around(target: Any) -> WandB:
    run = target.run if isinstance(target, ModuleType) else target
    if run is None:
        raise UsageError("wandb has no run; call wandb.init() before, or give the run")
    return WandB(run, own=False)


def opened(project: str) -> WandB:
    import wandb

    mode: Any = os.environ.get("WANDB_MODE", "offline")
    # The script may have a run of its own, which stays the current one.
    run = wandb.init(project=project or "gradclinic", mode=mode, reinit="create_new")
    return WandB(run, own=True)


class WandB:
    def __init__(self, run: Any, *, own: bool) -> None:
        self._run = run
        self._own = own
        run.define_metric(_STEP, hidden=True)
        run.define_metric(PREFIX + "*", step_metric=_STEP)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        self._log(step, values)

    def histogram(self, step: int, name: str, values: Sequence[float]) -> None:
        import wandb

        self._log(step, {name: wandb.Histogram(list(values))})

    def alert(self, step: int, finding: Finding) -> None:
        levels = {Severity.ERROR: "ERROR", Severity.WARNING: "WARN", Severity.INFO: "INFO"}
        self._run.summary[alert_name(finding)] = alert_text(finding)
        self._run.alert(f"{finding.code} {finding.name}", alert_text(finding), levels[finding.severity])

    def close(self) -> None:
        if self._own:
            self._run.finish()

    def _log(self, step: int, values: Mapping[str, object]) -> None:
        # A row of the user's own run is closed by the user: one more would shift the steps they count.
        self._run.log({**values, _STEP: step}, commit=self._own)

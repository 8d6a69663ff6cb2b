"""MLflow: metrics in batches, alerts as tags; it has no histograms."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from gradclinic.errors import UsageError
from gradclinic.findings import Finding
from gradclinic.sinks._sink import alert_name, alert_text

_MOST_AT_ONCE = 500
_SECONDS = 2.0


def around(target: Any) -> MLflow:
    import mlflow

    run = mlflow.active_run() if isinstance(target, ModuleType) else target
    if run is None:
        raise UsageError("mlflow has no active run; call mlflow.start_run() before, or give the run")
    return MLflow(run.info.run_id, own=False)


def opened(experiment: str) -> MLflow:
    import mlflow

    client = mlflow.MlflowClient()
    name = experiment or "gradclinic"
    known = client.get_experiment_by_name(name)
    place = known.experiment_id if known is not None else client.create_experiment(name)
    return MLflow(client.create_run(place).info.run_id, own=True)


class MLflow:
    def __init__(self, run: str, *, own: bool) -> None:
        import mlflow

        self._client = mlflow.MlflowClient()
        self._run = run
        self._own = own
        self._waiting: list[Any] = []
        self._written = time.monotonic()

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._waiting += [Metric(name, value, now, step) for name, value in values.items()]
        # Each writing is a transaction or a request, too slow for every update.
        if len(self._waiting) >= _MOST_AT_ONCE or time.monotonic() - self._written > _SECONDS:
            self._write()

    def histogram(self, step: int, name: str, values: Sequence[float]) -> None:
        """Not a thing of MLflow's."""

    def alert(self, step: int, finding: Finding) -> None:
        self._client.set_tag(self._run, alert_name(finding), alert_text(finding))

    def close(self) -> None:
        self._write()
        if self._own:
            self._client.set_terminated(self._run)

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        for first in range(0, len(waiting), _MOST_AT_ONCE):
            self._client.log_batch(self._run, metrics=waiting[first : first + _MOST_AT_ONCE])
        self._written = time.monotonic()

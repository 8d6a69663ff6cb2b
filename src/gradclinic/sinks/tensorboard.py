"""TensorBoard: scalars, histograms, and alerts as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradclinic.findings import Finding
from gradclinic.sinks._sink import alert_name, alert_text


def around(writer: Any) -> TensorBoard:
    return TensorBoard(writer, own=False)


def opened(folder: str) -> TensorBoard:
    from torch.utils.tensorboard import SummaryWriter

    return TensorBoard(SummaryWriter(folder or None), own=True)


class TensorBoard:
    def __init__(self, writer: Any, *, own: bool) -> None:
        self._writer = writer
        self._own = own

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def histogram(self, step: int, name: str, values: Sequence[float]) -> None:
        import numpy

        self._writer.add_histogram(name, numpy.asarray(values), step)

    def alert(self, step: int, finding: Finding) -> None:
        # Text is Markdown, where a line ends with two spaces.
        self._writer.add_text(alert_name(finding), alert_text(finding).replace("\n", "  \n"), step)

    def close(self) -> None:
        self._writer.flush()
        if self._own:
            self._writer.close()

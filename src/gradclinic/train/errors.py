"""What TrainStep raises: each message says what was given, what was expected and what to do."""

from __future__ import annotations

from gradclinic.errors import GradclinicError


class TrainStepError(GradclinicError, RuntimeError):
    """TrainStep was used in a way that would train wrongly. Nothing was changed."""


class NonFiniteError(TrainStepError):
    """Gradients or weights are NaN or infinite and skipping the update cannot help."""


class CheckpointError(TrainStepError):
    """A checkpoint is damaged, or is not of this run."""


class RanksDivergedError(TrainStepError):
    """Parameters that must be equal on every rank are not."""

"""What a loss is worth before any training."""

from __future__ import annotations

from dataclasses import dataclass

from gradclinic.facts.location import Location


@dataclass(frozen=True)
class LossLevel:
    """One loss at its first value, with what fixed guesses would give on the same targets."""

    loss: str
    value: float
    chance: float
    """Of a blind guess: uniform over the classes, or zero."""
    base_rate: float
    """Of the best constant guess: class frequencies, or the mean of the targets."""
    floor: float
    """Of a perfect prediction: above zero when labels are soft."""
    classes: int = 0
    """0 for a regression."""
    where: Location | None = None


@dataclass(frozen=True)
class InitialLoss:
    """The objective of a fresh model, and each loss in it whose chance level is known."""

    total: float
    levels: tuple[LossLevel, ...]
    trained: bool = False
    """The weights were trained before: a first loss below chance is then as it should be."""

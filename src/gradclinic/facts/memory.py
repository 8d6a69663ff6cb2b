"""What the tensors of training take in memory."""

from __future__ import annotations

from dataclasses import dataclass

from gradclinic.frozen import frozen


@frozen
class Held:
    """One parameter or buffer, with what training keeps beside it, in bytes."""

    name: str
    values: int
    gradient: int = 0
    state: int = 0
    """What the optimizer remembers of it."""
    trained: bool = True
    """False for buffers and for parameters that no optimizer holds."""


@dataclass(frozen=True)
class MemoryAccount:
    held: tuple[Held, ...]

    @property
    def total(self) -> int:
        return sum(one.values + one.gradient + one.state for one in self.held)


@frozen
class MemoryGrowth:
    """Resident memory of the process, looked at every few steps once training was under way."""

    steps: tuple[int, ...]
    megabytes: tuple[float, ...]

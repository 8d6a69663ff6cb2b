"""One accumulation window: what it holds and what its gradients must be divided by."""

from __future__ import annotations

import math
from typing import Any, Literal

from torch import Tensor

from gradclinic.train.errors import TrainStepError

Reduction = Literal["mean", "sum"]


class Window:
    """The micro-batches since the last update.

    The true mean of a window is `sum(weight * loss) / sum(weight)`, and the divisor is known only
    at its end. So every backward is scaled by a guess, the `unit` weight times the planned number
    of micro-batches, and the gradients are corrected once. When all weights equal the unit the
    correction is exactly one and costs nothing. A constant unit also keeps float16 in range,
    where token counts as factors would not.
    """

    def __init__(self, planned: int, exact: bool) -> None:
        self.planned = planned
        self.exact = exact
        """One micro-batch on one process: its mean is the window's mean, whatever it weighs."""
        self.unit: float | None = None
        self.weighted: bool | None = None
        self.reset()

    def reset(self) -> None:
        self.count = 0
        self.weights: list[float] = []
        self.losses: list[Tensor] = []
        self.summed: list[bool] = []

    def check(self, weight: object, reduction: object) -> float:
        """The weight as a number, or an error that says what is wrong with it."""
        if reduction not in ("mean", "sum"):
            raise TrainStepError(f"step(reduction={reduction!r}): expected 'mean' or 'sum'")
        if weight is None:
            if reduction == "sum":
                raise TrainStepError(
                    "step(reduction='sum') without a weight: say how many elements the loss sums over, "
                    "step(loss, weight=n, reduction='sum')"
                )
            number = 1.0
        else:
            try:
                number = float(weight)  # type: ignore[arg-type]
            except (TypeError, ValueError, RuntimeError):
                raise TrainStepError(
                    f"step(weight={weight!r}): expected one number, the count of elements the loss is "
                    "taken over, such as mask.sum()"
                ) from None
        if not 0 <= number < math.inf:
            raise TrainStepError(f"step(weight={weight!r}): expected a finite count, zero or more")
        if self.count and self.weighted is not (weight is not None):
            raise TrainStepError(
                "step() was given a weight for some micro-batches of this window and none for others; "
                "give one for each or for none"
            )
        return number

    def factor(self, weight: float, reduction: Reduction) -> float:
        """What to multiply this micro-batch's loss by before backward."""
        if self.exact:
            # An empty batch on its own has no mean; its window is empty and is not applied.
            return 1.0 if reduction == "mean" else 1 / (weight or 1.0)
        assert self.unit is not None
        return (weight if reduction == "mean" else 1.0) / (self.unit * self.planned)

    def add(self, loss: Tensor, weight: float, reduction: Reduction, weighted: bool) -> None:
        self.count += 1
        self.weighted = weighted
        self.weights.append(weight)
        self.losses.append(loss)
        self.summed.append(reduction == "sum")

    def correction(self, total_weight: float, ranks: int) -> float:
        """What is left to multiply the gradients by, `ranks` of which were averaged."""
        if self.exact:
            return 1.0
        assert self.unit is not None
        return ranks * self.unit * self.planned / total_weight

    @property
    def weight(self) -> float:
        return sum(self.weights)

    def parts(self) -> tuple[tuple[Tensor, float], ...]:
        """Losses and what each is multiplied by, so that their sum over `weight` is the window's mean."""
        return tuple(
            (loss, min(1.0, weight) if summed else weight)
            for loss, weight, summed in zip(self.losses, self.weights, self.summed, strict=True)
        )

    def loss_sum(self) -> float:
        return sum(float(loss) * times for loss, times in self.parts() if times)

    def state_dict(self) -> dict[str, Any]:
        return {
            "unit": self.unit,
            "weighted": self.weighted,
            "weights": list(self.weights),
            "losses": [loss.detach().cpu() for loss in self.losses],
            "summed": list(self.summed),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.unit, self.weighted = state["unit"], state["weighted"]
        self.weights, self.losses = list(state["weights"]), list(state["losses"])
        self.summed = list(state["summed"])
        self.count = len(self.weights)

"""Gradual unfreezing: parts of a model that join the training later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import nn

from gradclinic.train.errors import TrainStepError
from gradclinic.train.layout import in_module, unwrapped


class Unfreezing:
    """`{0: ["head"], 500: ["encoder.layer4"]}`: from which update on a module or parameter trains.

    The optimizer holds all of them from the start: a parameter without gradient is neither moved
    nor decayed.
    """

    def __init__(self, models: Sequence[nn.Module], plan: Mapping[int, Sequence[str]]) -> None:
        self._models = [unwrapped(model) for model in models]
        self._plan = {update: tuple(names) for update, names in sorted(plan.items())}
        known = [name for model in self._models for name, _ in model.named_parameters()]
        for names in self._plan.values():
            for wanted in names:
                if not any(in_module(name, wanted) for name in known):
                    raise TrainStepError(
                        f"TrainStep(unfreeze=…): {wanted!r} matches no parameter; expected the name of a "
                        f"module or parameter, such as {known[0].rpartition('.')[0] or known[0]!r}"
                    )

    def apply(self, updates: int) -> None:
        """Set what trains after so many updates."""
        for at, names in self._plan.items():
            for model in self._models:
                for name, parameter in model.named_parameters():
                    if any(in_module(name, wanted) for wanted in names):
                        parameter.requires_grad_(updates >= at)

    def changes_at(self, updates: int) -> bool:
        return updates in self._plan

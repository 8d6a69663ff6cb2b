"""What happens once per window: measure, refuse or scale, noise, step, schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from gradclinic.train import gradients, guard
from gradclinic.train.clip import Clip
from gradclinic.train.ema import EMA
from gradclinic.train.errors import NonFiniteError, TrainStepError
from gradclinic.train.gradients import Gradients
from gradclinic.train.layout import layout_of
from gradclinic.train.noise import Noise
from gradclinic.train.ranks import Ranks
from gradclinic.train.scale import LossScale
from gradclinic.train.unfreezing import Unfreezing
from gradclinic.train.update import Update
from gradclinic.train.window import Window


@dataclass
class Counters:
    updates: int = 0
    skipped: int = 0
    skips_in_a_row: int = 0
    rollbacks: int = 0


class Updater:
    """Owns the optimizers and all that must happen exactly when they step."""

    def __init__(
        self,
        models: Sequence[nn.Module],
        optimizers: Sequence[Optimizer],
        schedulers: Sequence[LRScheduler],
        ranks: Ranks,
        *,
        clip: Clip,
        scale: LossScale | None,
        noise: Noise | None,
        ema: EMA | None,
        unfreezing: Unfreezing | None,
        nonfinite: guard.Action,
        check_ranks_every: int,
    ) -> None:
        self.models = models
        self.optimizers = optimizers
        self.schedulers = schedulers
        self.ranks = ranks
        self.clip = clip
        self.scale = scale
        self.noise = noise
        self.ema = ema
        self.unfreezing = unfreezing
        self.counters = Counters()
        self.layout = layout_of(models, optimizers)
        self._nonfinite = nonfinite
        self._check_ranks_every = check_ranks_every
        self._snapshot: guard.Snapshot | None = None
        self._snapshot_updates = 0
        if unfreezing is not None:
            unfreezing.apply(0)

    @property
    def loss_scale(self) -> float:
        return 1.0 if self.scale is None else self.scale.value

    def follow_optimizers(self) -> None:
        """Groups may be added to an optimizer at any time."""
        held = sum(len(group["params"]) for optimizer in self.optimizers for group in optimizer.param_groups)
        if held != len(self.layout.parameters):
            self.layout = layout_of(self.models, self.optimizers)

    def zero(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def zero_stale(self) -> None:
        """Drop gradients that something else left between the batch and its loss."""
        if any(parameter.grad is not None for parameter in self.layout.parameters):
            self.zero()

    def finish(self, window: Window, term_norms: dict[str, float]) -> Update:
        """Use the gradients of a complete window, or refuse them. The window is empty after."""
        parts: tuple[tuple[float | Tensor, float], ...] = window.parts()
        weight = window.weight
        if not self.ranks.alone:
            weight, loss_sum = self.ranks.total([weight, window.loss_sum()])
            parts = ((loss_sum, 1.0),)
        correction = window.correction(weight, self.ranks.count) if weight else 1.0
        window.reset()
        found = gradients.measure(self.layout)
        scale = self.loss_scale
        unscaling = correction / scale
        norms = found.norms if unscaling == 1.0 else found.norms * unscaling
        norm = found.total * unscaling
        rates = tuple(group["lr"] for optimizer in self.optimizers for group in optimizer.param_groups)
        factor: float | list[float] = 1.0
        refused = self._refused(found, weight)
        if not refused:
            factor = self.clip.factor(norms, norm, self.layout, found.positions)
            self._apply(found, _times(factor, unscaling))
        names = self.layout.names
        return Update(
            number=self.counters.updates,
            applied=not refused,
            skipped=refused,
            norm=norm,
            clipped=(factor if isinstance(factor, float) else min(factor)) < 1.0,
            learning_rates=rates,
            loss_scale=scale,
            term_norms=term_norms,
            nonfinite=tuple(names[position] for position in found.nonfinite),
            _parts=parts,
            _weight=weight,
            _names=names,
            _positions=found.positions,
            _norms=norms,
        )

    def _apply(self, found: Gradients, factor: float | list[float]) -> None:
        gradients.scale_(found.tensors, factor)
        if self.clip.bound is not None:
            gradients.bound_(found.tensors, self.clip.bound)
        if self.noise is not None:
            self.noise.add_(found.tensors, self.counters.updates)
        if self._nonfinite == "rollback":
            self._remember()
        for optimizer in self.optimizers:
            optimizer.step()
        if self.scale is not None:
            self.scale.updated()
        for scheduler in self.schedulers:
            scheduler.step()
        updates = self.counters.updates = self.counters.updates + 1
        self.counters.skips_in_a_row = 0
        if self.ema is not None:
            self.ema.update()
        if self.unfreezing is not None and self.unfreezing.changes_at(updates):
            self.unfreezing.apply(updates)
        if self._check_ranks_every and updates % self._check_ranks_every == 0:
            self.ranks.assert_equal(self.layout)

    def _refused(self, found: Gradients, weight: float) -> str:
        """Why these gradients must not reach the optimizer; empty when they may."""
        if weight == 0:
            return "no micro-batch of the window had any weight"
        if not found.tensors:
            raise TrainStepError(
                "backward gave no gradient to any parameter of the optimizer; give step() the loss of this "
                "step's own model"
            )
        if not found.nonfinite:
            return ""
        first = self.layout.names[found.nonfinite[0]]
        counters = self.counters
        counters.skips_in_a_row += 1
        if counters.skips_in_a_row > guard.PATIENCE:
            raise NonFiniteError(
                f"gradients were not finite {counters.skips_in_a_row} times in a row, {first!r} among them, "
                "and the weights did not move; look for log, sqrt or division at the edge of their domain "
                "in the loss, and for NaN in the data"
            )
        if self.scale is not None and self.scale.value > 1.0:
            reason = f"gradients overflowed at loss scale {self.scale.value:g}"
            self.scale.overflowed()
        elif self._nonfinite == "stop":
            raise NonFiniteError(
                f"the gradient of {first!r} is NaN or infinite ({len(found.nonfinite)} of "
                f"{len(found.tensors)} are); the weights are as they were before this window"
            )
        elif self._nonfinite == "rollback" and self._snapshot is not None:
            self._snapshot.restore()
            counters.updates = self._snapshot_updates
            counters.rollbacks += 1
            reason = f"gradients were not finite; rolled back to update {counters.updates}"
        else:
            reason = "gradients were not finite"
        counters.skipped += 1
        guard.refuse_broken_weights(self.models, "after a forward whose gradients were not finite")
        return reason

    def _remember(self) -> None:
        rest = [*self.schedulers, self.clip, *([self.ema] if self.ema is not None else [])]
        self._snapshot = guard.Snapshot(self.models, self.optimizers, rest)
        self._snapshot_updates = self.counters.updates


def _times(factor: float | list[float], by: float) -> float | list[float]:
    return factor * by if isinstance(factor, float) else [one * by for one in factor]

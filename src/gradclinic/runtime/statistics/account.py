"""The running account of one optimizer: what each of its updates looked like."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import torch

from gradclinic.facts import Actor, Location
from gradclinic.facts.training import (
    ABSENT,
    Breakdown,
    NonFinite,
    Origin,
    Sample,
    Step,
    TensorInfo,
    Training,
    is_adaptive,
    padded,
    padded_step,
)
from gradclinic.runtime.actors import parameters_of
from gradclinic.runtime.listening import Listeners
from gradclinic.runtime.statistics import meter, rhythm
from gradclinic.runtime.statistics.glance import JUMP, Glance
from gradclinic.runtime.statistics.signals import Signals
from gradclinic.runtime.statistics.sizes import Sizes
from gradclinic.runtime.statistics.snapshot import Snapshot
from gradclinic.thinning import Thinned

_ALERT = 10
"""Updates sampled one by one after something odd was seen."""
_SOUND = 5
"""Finite updates in a row after which a broken one is forgotten."""
_SELDOM = 0.1
_MOST_PENDING = 512


class Account:
    def __init__(self, actor: str, optimizer: torch.optim.Optimizer, listeners: Listeners) -> None:
        self.actor = actor
        self._listeners = listeners
        self.index = 0
        """The number of the update to come."""
        self.skipped = 0
        self.breakdown: Breakdown | None = None
        self.backward: Location | None = None
        self.stepped: Location | None = None
        self.clip: Location | None = None
        self.value_clip = False
        self.signals = Signals()
        self.tensors: tuple[TensorInfo, ...] = ()
        self.asked = False
        """The optimizer's own step ran since the scaler was last asked for one."""
        self._parameters = 0
        self._plain = False
        """Gradients are ordinary dense tensors, as of the last sampled update."""
        self._sizes = Sizes()
        self._glance = Glance()
        self._losses: list[tuple[Location, torch.Tensor, float]] = []
        self._clipped: tuple[torch.Tensor | None, float] | None = None
        self._steps: Thinned[Step] = Thinned()
        self._samples: Thinned[Sample] = Thinned(first=16, last=32, between=64)
        self._snapshot: Snapshot | None = None
        self._gradients: Sequence[float] = ()
        self._next: Step | None = None
        self._alert = 0
        self._usual = 0.0
        self._type = type(optimizer).__name__
        self._climbs = any(group.get("maximize") for group in optimizer.param_groups)

    def loss_sent_back(self, where: Location, loss: torch.Tensor, scale: float) -> None:
        """A loss whose gradients the next update will use; `scale` is what it was multiplied by."""
        self.backward = where
        self._losses.append((where, loss, scale))
        del self._losses[:-_MOST_PENDING]

    def cleared(self) -> None:
        """What was sent back and clipped until now reaches no update."""
        self._losses.clear()
        self._clipped = None

    def clipped(self, norm: torch.Tensor | None, limit: float, where: Location) -> None:
        """`norm` is that of the gradients before; None when they are clipped value by value."""
        self.clip = where
        self.value_clip = norm is None
        self._clipped = (norm, limit)

    def loss_broke(self, optimizer: torch.optim.Optimizer, origin: Origin | None) -> None:
        """The loss is not finite: because the weights are not, or by itself."""
        if self.breakdown is not None:
            return
        parameters = parameters_of(optimizer)
        sizes = meter.read(meter.norms([meter.local(p).detach() for p in parameters if p.numel()]))
        broken: list[int] = []
        if not all(map(math.isfinite, sizes)):
            broken = [i for i, p in enumerate(parameters) if not meter.is_finite(meter.local(p).detach())]
        if broken:
            names = tuple(self.tensors[i].name for i in broken if i < len(self.tensors))
            self.breakdown = Breakdown(NonFinite.PARAMETER, self.index - 1, self.stepped, names)
        else:
            self.breakdown = Breakdown(NonFinite.LOSS, self.index, self.backward, origin=origin)

    @property
    def odd(self) -> bool:
        """Something is going wrong, and what is going on deserves a closer look."""
        return self._alert > 0

    def has_changed(self, optimizer: torch.optim.Optimizer) -> bool:
        return self._parameters != sum(len(group["params"]) for group in optimizer.param_groups)

    def introduce(self, optimizer: torch.optim.Optimizer, tensors: tuple[TensorInfo, ...]) -> None:
        self._parameters = len(tensors)
        self.tensors = tensors
        self._plain = False  # until looked at again

    @property
    def _sampling(self) -> bool:
        return self._alert > 0 or rhythm.weights_due(self.index)

    @property
    def _measuring(self) -> bool:
        return self._alert > 0 or rhythm.gradients_due(self.index)

    @torch.no_grad()
    def before_update(self, optimizer: torch.optim.Optimizer, scale: float | None) -> None:
        """Gradients as the update will use them; `scale` if they still carry one."""
        extra = [loss for _, loss, _ in self._losses]
        before = self._clipped[0] if self._clipped is not None else None
        if before is not None:
            extra.append(before)
        told = None
        if not self._measuring and self._plain:
            told = self._glance.read(parameters_of(optimizer), scale or 1.0, extra)
        if told is None or (before is not None and told[-1] > JUMP * self._usual):
            self._next = self._measure(optimizer, scale, extra)
        else:
            loss, rates = self._loss(told), _rates(optimizer)
            self._next = Step(self.index, loss, ABSENT, ABSENT, rates, limit=self._limit)
        if self._sampling:
            closely, spread = rhythm.closely_due(self.index), rhythm.histograms_due(self.index)
            self._snapshot = Snapshot.take(parameters_of(optimizer), scale, closely=closely, spread=spread)

    @property
    def _limit(self) -> float | None:
        return self._clipped[1] if self._clipped is not None else None

    def _measure(
        self, optimizer: torch.optim.Optimizer, scale: float | None, extra: Sequence[torch.Tensor]
    ) -> Step:
        gradients = [parameter.grad for group in optimizer.param_groups for parameter in group["params"]]
        present = [gradient for gradient in gradients if gradient is not None]
        if self._sampling:
            self._plain = all(map(meter.is_plain, present))
            self._sizes.plan(present)
            self._glance.plan(gradients)
        whole = present
        if not self._plain:
            present = [meter.local(gradient) for gradient in present]
        found, told = self._sizes.read(present, extra)
        if not self._plain:
            found = meter.of_whole(found, whole)
        if scale:
            found = [value / scale for value in found]
        used = meter.total(found)
        if not math.isfinite(used):
            self._not_finite(parameters_of(optimizer), told)
        each = array("d", found)
        if len(found) < len(gradients):
            known = iter(found)
            each = array("d", (ABSENT if gradient is None else next(known) for gradient in gradients))
        norm = told[-1] if len(extra) > len(self._losses) else used
        return Step(
            self.index, self._loss(told), norm, used, _rates(optimizer), limit=self._limit, gradients=each
        )

    def after_update(self, optimizer: torch.optim.Optimizer, amp_scale: float | None) -> None:
        step, self._next = self._next, None
        if step is None:
            return
        if amp_scale is not None:
            step = replace(step, scale=amp_scale)
        self._put_down(step)
        if self._snapshot is not None:
            sample = self._snapshot.compare(parameters_of(optimizer), step.index)
            self._snapshot = None
            self._samples.append(sample)
            self._listeners.sampled(self.actor, sample)
            if self.breakdown is None and not all(map(math.isfinite, sample.updates)):
                self._parameters_broke(sample.updates, step)
        if not step.measured:
            return
        odd = not math.isfinite(step.used) or (self._usual > 0 and step.norm > JUMP * self._usual)
        self._alert = _ALERT if odd else max(0, self._alert - 1)
        if math.isfinite(step.norm):
            self._usual = step.norm if not self._usual else 0.9 * self._usual + 0.1 * step.norm

    def update_skipped(self, optimizer: torch.optim.Optimizer, scale: float) -> None:
        """The scaler found non-finite gradients and made no update."""
        self._snapshot = None
        self.skipped += 1
        rates = _rates(optimizer)
        loss = self._loss(meter.read([loss for _, loss, _ in self._losses]))
        self._put_down(Step(self.index, loss, math.nan, math.nan, rates, scale, skipped=True))

    def _put_down(self, step: Step) -> None:
        self._steps.append(step)
        self._listeners.updated(self.actor, step)
        self._losses.clear()
        self._clipped = None
        self.index += 1

    def _loss(self, told: Sequence[float]) -> float | None:
        """The objective: micro-batches of one line are averaged, losses of several lines added."""
        by_line: defaultdict[Location, list[float]] = defaultdict(list)
        for (where, _, scale), value in zip(self._losses, told, strict=False):
            by_line[where].append(value / scale)
        if not by_line:
            return None
        return sum(sum(values) / len(values) for values in by_line.values())

    def _not_finite(self, parameters: list[torch.Tensor], told: Sequence[float]) -> None:
        if self.breakdown is not None:
            return
        broken = [
            position
            for position, parameter in enumerate(parameters)
            if parameter.grad is not None and not meter.is_finite(meter.local(parameter.grad))
        ]
        if not broken:
            return
        loss = self._loss(told)
        self.breakdown = Breakdown(
            NonFinite.GRADIENT if loss is None or math.isfinite(loss) else NonFinite.LOSS,
            self.index,
            self.backward,
            tuple(self.tensors[i].name for i in broken if i < len(self.tensors)),
            self.signals.suspect,
            loss,
        )

    def _parameters_broke(self, updates: Sequence[float], step: Step) -> None:
        names = tuple(
            tensor.name
            for tensor, update in zip(self.tensors, updates, strict=False)
            if not math.isfinite(update)
        )
        self.breakdown = Breakdown(NonFinite.PARAMETER, step.index, self.stepped, names, loss=step.loss)

    def _recovered(self) -> bool:
        """The latest updates are sound and few were not: what broke was guarded against or skipped."""
        rows = self._steps.rows()
        sound = [math.isfinite(s.norm) and (s.loss is None or math.isfinite(s.loss)) for s in rows]
        often = sum(not s.skipped and not ok for s, ok in zip(rows, sound, strict=True)) > _SELDOM * len(rows)
        return len(rows) >= _SOUND and all(sound[-_SOUND:]) and not often

    def training(self, actor: Actor, *, alone: bool, cut_short: bool) -> Training:
        count = len(self.tensors)
        return Training(
            optimizer=actor,
            tensors=self.tensors,
            steps=tuple(padded_step(row, count) for row in self._steps.rows()),
            samples=tuple(padded(row, count) for row in self._samples.rows()),
            taken=self.index - self.skipped,
            skipped=self.skipped,
            alone=alone,
            breakdown=None if self._recovered() else self.breakdown,
            backward=self.backward,
            stepped=self.stepped,
            clip=self.clip,
            value_clip=self.value_clip,
            adaptive=is_adaptive(self._type),
            climbs=self._climbs,
            sense=self.signals.sense,
            suspect=self.signals.suspect,
            activations=self.signals.activations(),
            cut_short=cut_short,
        )


def _rates(optimizer: torch.optim.Optimizer) -> tuple[float, ...]:
    """Of every group; NaN where the optimizer finds its own."""
    rates = [group.get("lr") for group in optimizer.param_groups]
    return tuple(math.nan if rate is None else float(rate) for rate in rates)

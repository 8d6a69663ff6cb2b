"""TrainStep: the part of a training loop whose order matters, in the only order it can have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from gradclinic.findings import Diagnosis
from gradclinic.train import guard, setup, state
from gradclinic.train import loss as losses
from gradclinic.train.chart import Chart
from gradclinic.train.clip import Clip
from gradclinic.train.ema import EMA
from gradclinic.train.errors import TrainStepError
from gradclinic.train.feed import Feed
from gradclinic.train.noise import Noise
from gradclinic.train.precision import Name as PrecisionName
from gradclinic.train.precision import Precision
from gradclinic.train.ranks import Ranks, Traffic
from gradclinic.train.scale import LossScale
from gradclinic.train.unfreezing import Unfreezing
from gradclinic.train.update import Update
from gradclinic.train.updater import Updater
from gradclinic.train.window import Reduction, Window

Batch = TypeVar("Batch")


class TrainStep:
    """Zero, backward, unscale, clip, noise, step, schedule: once per update, in this order.

        step = TrainStep(model, optimizer, scheduler=schedule, accumulate=8, clip=Clip.norm(1.0))
        for batch in step.over(loader):
            loss = loss_fn(model(batch.x), batch.y)
            step(loss, weight=batch.tokens)

    `accumulate` micro-batches make one update with the gradient of their true mean. `scheduler`
    advances once per applied update. `nonfinite` says what to do when gradients are not finite:
    'skip' the update and count it, 'stop', or 'rollback' to where they last were. `tail` says
    whether an incomplete last window is a 'step' or is 'drop'ped.
    """

    def __init__(
        self,
        model: nn.Module | Sequence[nn.Module],
        optimizer: Optimizer | Sequence[Optimizer],
        *,
        scheduler: LRScheduler | Sequence[LRScheduler] | None = None,
        accumulate: int = 1,
        clip: Clip | None = None,
        precision: PrecisionName = "fp32",
        nonfinite: guard.Action = "skip",
        tail: Literal["step", "drop"] = "step",
        noise: Noise | None = None,
        ema: float | None = None,
        terms: Mapping[str, float] | None = None,
        term_norms_every: int = 0,
        unfreeze: Mapping[int, Sequence[str]] | None = None,
        check_ranks_every: int = 0,
        process_group: ProcessGroup | None = None,
    ) -> None:
        self.models = setup.models_of(model)
        optimizers = setup.optimizers_of(optimizer, self.models)
        schedulers = setup.schedulers_of(scheduler, optimizers)
        setup.check_options(accumulate, clip, nonfinite, tail)
        self.ranks = Ranks(self.models, process_group)
        setup.check_ranks(self.ranks, unfreeze, term_norms_every)
        self.precision = Precision(precision, setup.device_of(optimizers))
        self.accumulate = accumulate
        self.updater = Updater(
            self.models,
            optimizers,
            schedulers,
            self.ranks,
            clip=clip or Clip(),
            scale=LossScale() if precision == "fp16" else None,
            noise=noise,
            ema=EMA(self.models, ema) if ema is not None else None,
            unfreezing=Unfreezing(self.models, unfreeze) if unfreeze else None,
            nonfinite=nonfinite,
            check_ranks_every=check_ranks_every,
        )
        self.window = Window(accumulate, exact=accumulate == 1 and self.ranks.alone)
        self.epoch = 0
        """Passes over the data so far."""
        self.losses = 0
        """Losses given, over all micro-batches."""
        self.dropped = 0
        """Micro-batches whose window was left incomplete and not applied."""
        self.awaiting = False
        """A batch was handed out and its loss has not been given yet."""
        self.feed: Feed | None = None
        self.resume_data: dict[str, Any] | None = None
        """Where in its data a loaded state was; the next `over()` goes there."""
        self._tail = tail
        self._terms = dict(terms or {})
        self._term_norms_every = term_norms_every
        self._term_norms: dict[str, float] = {}
        self._chart = Chart()
        self._listeners: list[Callable[[Update], None]] = [self._chart.note]
        self._own: frozenset[int] = frozenset()

    def over(self, loader: Iterable[Batch], also: Sequence[TrainStep] = ()) -> Iterator[Batch]:
        """One pass over the data, a batch at a time; `also` are further steps fed by the same batches.

        Each step may be given one loss per batch. Leaving the loop early drops the open window;
        to keep it, close it with `step(loss, last=True)` before `break`.
        """
        steps = (self, *also)
        setup.check_joined([step.precision.name for step in steps])
        for step in steps:
            if step.feed is not None:
                step.feed.abandon()
        resume, self.resume_data = self.resume_data, None
        return Feed(loader, steps, resume).run()

    def __call__(
        self,
        loss: Tensor | Mapping[str, Tensor],
        *,
        weight: float | Tensor | None = None,
        reduction: Reduction = "mean",
        last: bool = False,
    ) -> Update | None:
        """Give the loss of the batch; returns the update when this completes a window, else None.

        `weight` is the number of elements (tokens, samples) the loss is a mean of, or the sum of
        with `reduction='sum'`. `last` closes the window early, on all ranks alike.
        """
        feed = self.feed
        if feed is None or not self.awaiting:
            raise _misplaced(feed)
        objective, terms = losses.objective_of(loss, self._terms)
        count = self.window.check(weight, reduction)
        self._check_reach(objective)
        feed.pause_autocast()
        self.awaiting = False
        closing = last or self.window.count + 1 >= self.accumulate or (feed.last and self._tail == "step")
        try:
            if closing and self.ranks.shards:
                self.ranks.synchronise(True)
            self._backward(objective, terms, 0.0 if feed.padding else count, reduction, weight is not None)
            return self._finish() if closing else None
        finally:
            feed.resume_autocast()

    def listen(self, listener: Callable[[Update], None]) -> None:
        """Call `listener` with every update, applied or not."""
        self._listeners.append(listener)

    def diagnose(self) -> Diagnosis:
        """What is wrong with the training so far, from the numbers the updates needed anyway."""
        return self._chart.diagnosis(self.updater, type(self.models[0]).__name__)

    @property
    def updates(self) -> int:
        """Updates applied; the schedule has advanced as often."""
        return self.updater.counters.updates

    @property
    def skipped(self) -> int:
        """Updates not applied because gradients were not finite."""
        return self.updater.counters.skipped

    @property
    def rollbacks(self) -> int:
        return self.updater.counters.rollbacks

    @property
    def ema(self) -> EMA:
        """The averaged weights; there are some when `ema=` was given."""
        if self.updater.ema is None:
            raise TrainStepError("this TrainStep keeps no average; build it with TrainStep(…, ema=0.999)")
        return self.updater.ema

    @property
    def padding(self) -> bool:
        """The batch in hand repeats an earlier one, for other ranks have more data. It counts for nothing."""
        return self.feed is not None and self.feed.padding

    @property
    def traffic(self) -> Traffic:
        """Bytes of gradient reduced between ranks, and saved by reducing once per window."""
        return self.ranks.traffic

    def state_dict(self) -> dict[str, Any]:
        """All that training depends on beside the model's weights. Loads with `weights_only=True`."""
        return state.capture(self)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go back to a saved place. The next `over()` continues the pass that was interrupted."""
        state.restore(self, saved)

    def save(self, directory: str, keep: int = 2) -> str:
        """Write model and step as a new checkpoint, atomically; returns its path."""
        from gradclinic.train.checkpoint import save

        return str(save(self, directory, keep))

    def resume(self, directory: str) -> str | None:
        """Load the newest sound checkpoint; returns its path, or None when there is none yet."""
        from gradclinic.train.checkpoint import load_newest

        found = load_newest(self, directory)
        return None if found is None else str(found)

    def begin_pass(self, feed: Feed) -> None:
        self.feed = feed

    def expect(self, feed: Feed) -> None:
        """A batch is about to be handed out."""
        self.awaiting = True
        if self.window.count == 0:
            self.updater.follow_optimizers()
            self.updater.zero()
        self.ranks.synchronise(feed.last or self.window.count + 1 >= self.accumulate)

    def check_answered(self, feed: Feed) -> None:
        """The loop asks for the next batch. One without a loss does not count, if no rank waits for it."""
        if self.awaiting and self is feed.steps[0] and not self.ranks.alone:
            raise TrainStepError(
                "a batch was not answered with step(loss) on this rank, and the other ranks wait for it; to "
                "leave a batch out, call step(loss, weight=0)"
            )
        self.awaiting = False

    def end_pass(self) -> None:
        """The data ended: what is left in the window is applied, normalised by what it holds."""
        if self.window.count and self._tail == "step":
            self._finish()
        guard.refuse_broken_weights(self.models, f"after {self.updates} updates")

    def leave(self, feed: Feed) -> None:
        """The pass is over, at its end or by `break`. A pass replaced by another may say so late."""
        if self.feed is not feed:
            return
        self.feed = None
        self.awaiting = False
        self.epoch += 1
        if self.window.count:
            self.dropped += self.window.count
            self.window.reset()
            self.updater.zero()
        self.ranks.synchronise(True)

    def _check_reach(self, objective: Tensor) -> None:
        parameters = self.updater.layout.parameters
        if len(self._own) != len(parameters):
            self._own = frozenset(map(id, parameters))
        # Sharded parameters are not in the graph themselves: what they were gathered into is.
        if not self.ranks.shards and not losses.reaches(objective, self._own):
            raise TrainStepError(
                "the loss given to step() does not depend on any parameter of this step's optimizer: it is "
                "of another model, or the optimizer was built before the model was replaced; give each "
                "loss to the step of its own model"
            )

    def _backward(
        self, objective: Tensor, terms: dict[str, Tensor], weight: float, reduction: Reduction, weighted: bool
    ) -> None:
        window, parameters = self.window, self.updater.layout.parameters
        if window.count == 0:
            self.updater.zero_stale()
            wanted = self._term_norms_every and self.updates % self._term_norms_every == 0
            self._term_norms = losses.gradient_norms(terms, parameters) if wanted else {}
        if window.unit is None and not window.exact:
            window.unit = self.ranks.largest(weight) or None
        factor = window.factor(weight, reduction) * self.updater.loss_scale if weight else 0.0
        window.add(objective.detach(), weight, reduction, weighted)
        self.losses += 1
        if not weight and self.ranks.alone:
            return
        self.ranks.count_backward(self.updater.layout)
        only: list[Tensor] | None = None
        if self.feed is not None and len(self.feed.steps) > 1 and not self.ranks.shards:
            # A loss that passes through another step's model must not leave gradients there.
            only = [parameter for parameter in parameters if parameter.requires_grad]
        torch.autograd.backward(losses.scaled(objective, factor), inputs=only)

    def _finish(self) -> Update:
        if not self.ranks.synchronising:
            self.ranks.reduce_now(self.updater.layout)
        update = self.updater.finish(self.window, self._term_norms)
        for listener in self._listeners:
            listener(update)
        return update


def _misplaced(feed: Feed | None) -> TrainStepError:
    if feed is None:
        return TrainStepError(
            "step(loss) was called outside a pass over the data; call it inside "
            "`for batch in step.over(loader):`, where any iterable will do, such as range(1000)"
        )
    return TrainStepError(
        "step() was given a second loss for one batch; add the losses, or give them by name in one call: "
        "step({'recon': loss_a, 'kl': loss_b}). Two optimizers with a loss each are two TrainSteps, "
        "joined by over(loader, also=[other])"
    )

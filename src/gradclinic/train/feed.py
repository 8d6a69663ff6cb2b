"""One pass over the data: hands out batches and tells the steps where windows end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gradclinic.train import rng
from gradclinic.train.errors import TrainStepError
from gradclinic.train.position import Position, length_of

if TYPE_CHECKING:
    from gradclinic.train.step import TrainStep

_END = object()


class Feed:
    """What `TrainStep.over` iterates. The first of `steps` leads: its ranks, precision and epoch count."""

    def __init__(
        self, loader: Iterable[Any], steps: Sequence[TrainStep], resume: dict[str, Any] | None
    ) -> None:
        self.steps = steps
        self.last = False
        """The batch handed out is the last of the pass, on every rank."""
        self.padding = False
        """This rank has no batch left while others do: the batch is a repeat and counts for nothing."""
        self._ranks = steps[0].ranks
        self._precision = steps[0].precision
        self._resume = resume
        self._position = Position(loader, steps[0].epoch)
        self._before_fetch: dict[str, Any] | None = None

    def run(self) -> Iterator[Any]:
        losses = self._losses_given()
        for step in self.steps:
            step.begin_pass(self)
        try:
            for batch in self._batches():
                for step in self.steps:
                    step.expect(self)
                self._precision.enter()
                yield batch
                self._precision.leave()
                for step in self.steps:
                    step.check_answered(self)
            if self._resume is None and self._position.batches and self._losses_given() == losses:
                raise TrainStepError(
                    f"{self._position.batches} batches went by and step() was not called once; call "
                    "step(loss) in the loop, or iterate the loader itself when not training"
                )
            for step in self.steps:
                step.end_pass()
        finally:
            self.abandon()

    def _losses_given(self) -> int:
        return sum(step.losses for step in self.steps)

    def abandon(self) -> None:
        """The loop was left: what it holds open is closed. Safe to call again, at any later time."""
        self._precision.leave()
        for step in self.steps:
            step.leave(self)

    def pause_autocast(self) -> None:
        self._precision.leave()

    def resume_autocast(self) -> None:
        """On again while another step of the same batch waits for its loss."""
        if any(step.awaiting for step in self.steps):
            self._precision.enter()

    def state_dict(self) -> dict[str, Any]:
        return self._before_fetch or self._position.state_dict()

    def _batches(self) -> Iterator[Any]:
        position, resume = self._position, self._resume
        iterator = position.begin() if resume is None else position.return_to(resume)
        length = length_of(position.loader)
        lengths = self._ranks.everyones(length)
        if None in lengths and not self._ranks.alone:
            return self._unsized(iterator)
        if resume is not None:
            rng.restore(resume["rng"])
        return self._sized(iterator, max(lengths, default=None) if None not in lengths else None)

    def _sized(self, iterator: Iterator[Any], total: int | None) -> Iterator[Any]:
        """The number of batches is known before, or there is no other rank that must know it."""
        position = self._position
        while self._ranks.alone or total is None or position.batches < total:
            batch = next(iterator, _END)
            if batch is _END and (self._ranks.alone or position.batches == total):
                return
            self.last = position.batches + 1 == total
            yield self._handed_out(batch)

    def _unsized(self, iterator: Iterator[Any]) -> Iterator[Any]:
        """No rank knows the length: look one batch ahead and ask the others whether they have one."""
        position = self._position
        if self._resume is not None:
            rng.restore(self._resume.get("fetch_rng", self._resume["rng"]))
        upcoming = next(iterator, _END)
        if self._resume is not None:
            rng.restore(self._resume["rng"])
        any_left = self._ranks.largest(upcoming is not _END)
        while any_left:
            batch = upcoming
            position.batches += 1
            self._before_fetch = {**position.state_dict(), "fetch_rng": rng.capture()}
            position.batches -= 1
            upcoming = next(iterator, _END)
            any_left = self._ranks.largest(upcoming is not _END)
            self.last = not any_left
            yield self._handed_out(batch)

    def _handed_out(self, batch: Any) -> Any:
        position = self._position
        self.padding = batch is _END
        if self.padding and position.batches == 0:
            raise TrainStepError(
                "this rank has no batch at all while another has; give every rank at least one, with a "
                "DistributedSampler for instance"
            )
        if not self.padding:
            position.last_batch = batch
        position.batches += 1
        return position.last_batch

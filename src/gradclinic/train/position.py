"""Where in its data a pass is, and how to come back to exactly there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from gradclinic.train import rng
from gradclinic.train.errors import CheckpointError


class Position:
    """One pass over a loader, from its beginning or from a saved place.

    A loader with a state of its own (torchdata's StatefulDataLoader) is trusted with it, then a
    sampler with one. Any other is replayed: the random streams are set back to where the pass
    began and the batches already used are fetched again and dropped.
    """

    def __init__(self, loader: Iterable[Any], epoch: int) -> None:
        self.loader = loader
        self.batches = 0
        self.last_batch: Any = None
        self._begin: dict[str, Any] = {}
        for owner in (loader, *_samplers(loader)):
            if callable(set_epoch := getattr(owner, "set_epoch", None)):
                set_epoch(epoch)

    def begin(self) -> Iterator[Any]:
        self._begin = {"rng": rng.capture(), "generator": _generator_state(self.loader)}
        return iter(self.loader)

    def return_to(self, saved: dict[str, Any]) -> Iterator[Any]:
        self.batches = saved["batches"]
        self._begin = saved["begin"]
        if "loader" in saved:
            self.loader.load_state_dict(saved["loader"])  # type: ignore[attr-defined]
            return iter(self.loader)
        if "sampler" in saved:
            self.loader.sampler.load_state_dict(saved["sampler"])  # type: ignore[attr-defined]
            return iter(self.loader)
        return self._replayed()

    def _replayed(self) -> Iterator[Any]:
        rng.restore(self._begin["rng"])
        if self._begin["generator"] is not None:
            self.loader.generator.set_state(self._begin["generator"])  # type: ignore[attr-defined]
        iterator = iter(self.loader)
        for done in range(self.batches):
            try:
                self.last_batch = next(iterator)
            except StopIteration:
                raise CheckpointError(
                    f"the checkpoint was taken after {self.batches} batches of a pass, and the loader given "
                    f"to over() ended after {done}; resume with the same data and batch size"
                ) from None
        return iterator

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"batches": self.batches, "begin": self._begin}
        sampler = getattr(self.loader, "sampler", None)
        if _has_state(self.loader):
            state["loader"] = self.loader.state_dict()  # type: ignore[attr-defined]
        elif _has_state(sampler) and getattr(self.loader, "num_workers", 0) == 0:
            # With workers the sampler runs ahead of the batches handed out.
            state["sampler"] = sampler.state_dict()  # type: ignore[union-attr]
        return state


def length_of(loader: Iterable[Any]) -> int | None:
    try:
        return len(loader)  # type: ignore[arg-type]
    except TypeError:
        return None


def _samplers(loader: Iterable[Any]) -> list[Any]:
    batch_sampler = getattr(loader, "batch_sampler", None)
    found = [getattr(loader, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None)]
    return list({id(sampler): sampler for sampler in found if sampler is not None}.values())


def _has_state(owner: object) -> bool:
    return all(callable(getattr(owner, name, None)) for name in ("state_dict", "load_state_dict"))


def _generator_state(loader: Iterable[Any]) -> torch.Tensor | None:
    generator = getattr(loader, "generator", None)
    return generator.get_state() if isinstance(generator, torch.Generator) else None

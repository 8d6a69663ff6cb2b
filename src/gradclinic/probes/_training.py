"""A training in progress, as the experiments about saving and repeating it see it."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.nn import Module
from torch.optim import Optimizer

from gradclinic.case import Case
from gradclinic.probes._fingerprint import fingerprint
from gradclinic.probes._trainee import Trainee


@dataclass
class Training:
    """One run: what it is made of, how it takes a step, and how it saves and loads itself.

    `parts` names what else holds state (`{"schedule": scheduler, "scaler": scaler}`), so that a
    checkpoint that forgets one can be told so by name.
    """

    model: Module
    optimizer: Optimizer
    step: Callable[[], object]
    save: Callable[[Path], object]
    load: Callable[[Path], object]
    parts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, case: Case) -> Training:
        """The plain loop over the case's loader, with a checkpoint of all that can be saved."""
        loop = _PlainLoop(case)
        return cls(case.model, loop.trainee.optimizer, loop.step, loop.save, loop.load)

    def state(self) -> dict[str, str]:
        """A fingerprint of each thing that a checkpoint has to bring back, by its name."""
        found = {f"parameter {name}": fingerprint(p) for name, p in self.model.named_parameters()}
        found |= {f"buffer {name}": fingerprint(b) for name, b in self.model.named_buffers()}
        kind = type(self.optimizer).__name__
        state = self.optimizer.state_dict()
        held: dict[str, list[Any]] = {}
        for slots in state["state"].values():
            for slot, value in slots.items():
                held.setdefault(slot, []).append(value)
        found |= {f"{kind}'s {slot}": fingerprint(values) for slot, values in held.items()}
        groups = [{k: v for k, v in group.items() if k != "params"} for group in state["param_groups"]]
        found["the learning rates" if groups else "groups"] = fingerprint([g.get("lr") for g in groups])
        for name, part in self.parts.items():
            found[f"the {name}"] = fingerprint(part.state_dict() if hasattr(part, "state_dict") else part)
        return found | random_states()


def random_states() -> dict[str, str]:
    """A fingerprint of each global random stream."""
    found = {
        "python's random state": fingerprint(repr(random.getstate())),
        "torch's random state": fingerprint(torch.get_rng_state()),
    }
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found["numpy's random state"] = fingerprint(repr(numpy.random.get_state()))
    return found


class _PlainLoop:
    """What a careful user would write: weights, optimizer, random streams and place in the data saved."""

    def __init__(self, case: Case) -> None:
        self.case, self.trainee = case, Trainee(case)
        self.taken = 0
        self.at_epoch = torch.get_rng_state()
        self.batches: Iterator[Any] = iter(())
        case.model.train()

    def step(self) -> float:
        batch = next(self.batches, None)
        if batch is None:
            self.taken, self.at_epoch = 0, torch.get_rng_state()
            self.batches = self.case.batches()
            batch = next(self.batches)
        self.taken += 1
        return self.trainee.step(batch)

    def save(self, path: Path) -> None:
        random_states = {"torch": torch.get_rng_state(), "python": random.getstate()}
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            random_states["numpy"] = numpy.random.get_state()
        model, optimizer = self.case.model.state_dict(), self.trainee.optimizer.state_dict()
        place = {"taken": self.taken, "at_epoch": self.at_epoch}
        torch.save({"model": model, "optimizer": optimizer, "random": random_states, "place": place}, path)

    def load(self, path: Path) -> None:
        saved = torch.load(path, weights_only=False)
        self.case.model.load_state_dict(saved["model"])
        self.trainee.optimizer.load_state_dict(saved["optimizer"])
        # The order of an epoch is drawn when it begins: rewind to there, and skip what was used.
        self.taken, self.at_epoch = saved["place"]["taken"], saved["place"]["at_epoch"]
        torch.set_rng_state(self.at_epoch)
        if self.taken:
            self.batches = self.case.batches()
            for _ in range(self.taken):
                next(self.batches)
        torch.set_rng_state(saved["random"]["torch"])
        random.setstate(saved["random"]["python"])
        numpy = sys.modules.get("numpy")
        if numpy is not None and "numpy" in saved["random"]:
            numpy.random.set_state(saved["random"]["numpy"])

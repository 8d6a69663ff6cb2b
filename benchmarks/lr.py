"""Learning-rate finders side by side: what they suggest, what training with it gives, what it cost.

    PYTHONPATH=src:benchmarks python benchmarks/lr.py

Each suggestion trains each problem for 300 steps on fresh data; the reference is the best of twelve
rates from 1e-5 to 10. torch-lr-finder and Lightning are run where they are installed, with their
defaults (a hundred steps), over the same range of rates. The constants of gradclinic's finder were
chosen while looking at the first five problems, those of the others were not: compare on the rest.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
from lr_problems import CHECKS, PROBLEMS

from gradclinic import Case
from gradclinic.probes._trainee import Trainee
from gradclinic.probes.lr import HIGHEST, LOWEST, rate_range

GRID = [10 ** (-5 + 6 * point / 11) for point in range(12)]
STEPS = 300
LAST = 60
Make = Callable[[], Case]


def trained(make: Make, rate: float | None) -> float:
    """The mean loss of the last steps of training at this rate."""
    if rate is None:
        return math.inf
    case = make()
    case.model.train()
    trainee = Trainee(case)
    trainee.scale_rates(rate / trainee.rate)
    losses = [trainee.step(batch) for batch in itertools.islice(case.batches(), STEPS)]
    mean = sum(losses[-LAST:]) / LAST
    return mean if math.isfinite(mean) else math.inf


def ours(make: Make) -> tuple[float | None, int]:
    found = rate_range(make())
    return found.suggestion, found.steps


class _Labelled(torch.utils.data.IterableDataset[Any]):
    """The case's batches as the loader that other finders want."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def __iter__(self) -> Any:
        return self.case.batches()


def _loader(case: Case) -> Any:
    return torch.utils.data.DataLoader(_Labelled(case), batch_size=None)


def lr_finder(make: Make) -> tuple[float | None, int]:
    """torch-lr-finder 0.2.2: the steepest point of its smoothed curve, as its own plot suggests it."""
    from torch_lr_finder import LRFinder

    case = make()
    optimizer = case.make_optimizer()
    for group in optimizer.param_groups:
        group["lr"] = LOWEST
    finder = LRFinder(case.model, optimizer, lambda out, target: case.loss(out, (None, target)))  # type: ignore[misc]
    finder.range_test(_loader(case), end_lr=HIGHEST, num_iter=100)
    rates, losses = finder.history["lr"][10:-5], finder.history["loss"][10:-5]
    # numpy.gradient in its plot(); torch's is the same central difference.
    (slopes,) = torch.gradient(torch.tensor(losses))
    steepest = rates[int(slopes.argmin())]
    return steepest, len(finder.history["lr"])


def lightning_tuner(make: Make) -> tuple[float | None, int]:
    import lightning

    case = make()

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.lr = case.model, 1e-3

        def training_step(self, batch: Any, index: int) -> Any:
            return case.evaluate(self.model, batch).total

        def configure_optimizers(self) -> Any:
            optimizer = case.make_optimizer()
            for group in optimizer.param_groups:
                group["lr"] = self.lr
            return optimizer

    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(max_steps=1000, accelerator="cpu", enable_checkpointing=False, **quiet)
    tuner = lightning.pytorch.tuner.Tuner(trainer)
    found = tuner.lr_find(Module(), train_dataloaders=_loader(case), min_lr=LOWEST, max_lr=HIGHEST)
    return found.suggestion(), len(found.results["lr"])


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    finders: dict[str, Callable[[Make], tuple[float | None, int]]] = {"gradclinic": ours}
    if find_spec("torch_lr_finder"):
        finders["torch-lr-finder"] = lr_finder
    if find_spec("lightning"):
        finders["Lightning Tuner"] = lightning_tuner
    print("| problem | best of grid |" + "".join(f" {name} |" for name in finders))
    print("|---|---|" + "---|" * len(finders))
    for make in (*PROBLEMS, *CHECKS):
        torch.manual_seed(0)
        losses = {rate: trained(make, rate) for rate in GRID}
        best = min(losses, key=losses.__getitem__)
        cells = [make().name, f"{losses[best]:.4g} at {best:.2g}"]
        for finder in finders.values():
            started = time.process_time()
            rate, steps = finder(make)
            spent = time.process_time() - started
            loss = trained(make, rate)
            told = "none" if rate is None else f"{rate:.2g}"
            cells.append(f"{told}: {loss:.4g} ({loss / losses[best] - 1:+.0%}), {steps} steps, {spent:.1f} s")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

"""A training run that saves as it goes and can be killed at any moment."""

from __future__ import annotations

import random
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import numpy
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from gradclinic import Clip, Noise, TrainStep

EPOCHS = 12


class NoisyData(Dataset[tuple[Tensor, Tensor]]):
    """Samples that draw from every random stream, as augmentations do."""

    def __len__(self) -> int:
        return 44

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        shift = random.random() + float(numpy.random.rand())
        return torch.full((5,), index / 44) + torch.randn(5) + shift, torch.tensor([index / 44])


def built(precision: str = "fp32", stateful: bool = False) -> tuple[nn.Module, TrainStep, DataLoader]:
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    step = TrainStep(
        model,
        optimizer,
        scheduler=torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=1000),
        accumulate=3,
        clip=Clip.adaptive(),
        precision=precision,  # type: ignore[arg-type]
        noise=Noise(),
        ema=0.9,
    )
    kind: type[DataLoader] = DataLoader
    if stateful:
        from torchdata.stateful_dataloader import StatefulDataLoader

        kind = StatefulDataLoader
    return model, step, kind(NoisyData(), batch_size=4, shuffle=True)


def everything(model: nn.Module, step: TrainStep) -> list[Tensor]:
    """All bits that must be equal at the end, one more draw from each random stream included."""
    return [
        *(tensor.clone() for tensor in model.state_dict().values()),
        *(tensor.clone() for tensor in step.ema.state_dict()["average"]),
        *(
            value.clone()
            for state in step.updater.optimizers[0].state.values()
            for value in state.values()
            if isinstance(value, Tensor)
        ),
        torch.randn(2),
        torch.tensor([random.random(), float(numpy.random.rand()), step.updates, step.losses, step.epoch]),
    ]


def run(directory: str, progress: Synchronized[int]) -> None:
    """Train to the end, from wherever the last sound checkpoint is, and show how far it is."""
    torch.set_num_threads(1)
    model, step, loader = built()
    step.resume(directory)
    while step.epoch < EPOCHS:
        for x, y in step.over(loader):
            step(nn.functional.mse_loss(model(x), y), weight=len(x))
            progress.value += 1
            if step.losses % 2 == 0:
                step.save(directory)
    finished = Path(directory) / "unfinished"
    torch.save(everything(model, step), finished)
    finished.rename(Path(directory) / "finished")

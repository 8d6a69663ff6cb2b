"""Train with every kind of step in turn: python every_loop.py {none,DDP,FSDP2}."""

import itertools
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from gradclinic import Clip, TrainStep

CLIPS = (None, Clip.norm(1.0), Clip.value(0.5), Clip.norm(1.0, per="layer"))


def build(wrap: str) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
    if wrap == "DDP":
        return DistributedDataParallel(model)
    if wrap == "FSDP2":
        from torch.distributed.fsdp import fully_shard

        return fully_shard(model)
    return model


def data(count: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(3, (count,), generator=generator)
    centres = 2 * torch.randn(3, 10, generator=generator)
    return TensorDataset(centres[labels] + torch.randn(count, 10, generator=generator), labels)


def train(wrap: str, accumulate: int, weighted: bool, precision: str, clip: Clip | None) -> None:
    model = build(wrap)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60)
    samples = data(90 if weighted else 96)
    sampler = None if wrap == "none" else DistributedSampler(samples)
    loader = DataLoader(samples, batch_size=8, sampler=sampler, shuffle=sampler is None)
    step = TrainStep(
        model, optimizer, scheduler=schedule, accumulate=accumulate, clip=clip, precision=precision
    )
    for _ in range(3):
        for x, y in step.over(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            step(loss, weight=len(y) if weighted else None)


def main() -> None:
    wrap = sys.argv[1]
    if wrap != "none":
        dist.init_process_group("gloo")
    windows = ((1, False), (4, False), (4, True))
    for (accumulate, weighted), precision, clip in itertools.product(
        windows, ("fp32", "bf16", "fp16"), CLIPS
    ):
        train(wrap, accumulate, weighted, precision, clip)
    if wrap != "none":
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

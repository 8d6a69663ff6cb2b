"""Every way to take a step, and the gradient a plain loop on one process gives for it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from gradclinic import Clip, TrainStep
from tests.train.plain import batches_of, loss_of, small_model

SIZES = {
    "accumulate 1": [[6], [6]],
    "accumulate 4": [[6] * 4, [6] * 4],
    "unequal": [[2, 7, 1, 5], [3, 1, 6, 4]],
}
PRECISIONS = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
CLIPS = {
    "no clip": None,
    "norm": Clip.norm(0.05),
    "value": Clip.value(0.01),
    "per layer": Clip.norm(0.04, per="layer"),
}
TOLERANCE = {"fp32": 2e-6, "bf16": 2e-2, "fp16": 3e-3}
"""Relative to each tensor's norm: float16 and bfloat16 round every product of the two loops differently."""


@dataclass(frozen=True)
class Combination:
    window: str
    precision: str
    clip: str

    def __str__(self) -> str:
        return f"{self.window}, {self.precision}, {self.clip}"


COMBINATIONS = [Combination(*parts) for parts in itertools.product(SIZES, PRECISIONS, CLIPS)]


def expected_gradients(one: Combination, ranks: int) -> list[Tensor]:
    """By hand, on one process, with all micro-batches of all ranks in one window."""
    model = small_model(torch.float32)
    batches = [
        batch
        for rank in range(ranks)
        for batch in batches_of(SIZES[one.window][rank], torch.float32, seed=rank)
    ]
    samples = sum(len(x) for x, _ in batches)
    dtype = PRECISIONS[one.precision]
    for batch in batches:
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            loss = loss_of(model, batch)
        (loss * len(batch[0]) / samples).backward()
    if one.clip == "norm":
        clip_grad_norm_(model.parameters(), 0.05)
    elif one.clip == "value":
        clip_grad_value_(model.parameters(), 0.01)
    elif one.clip == "per layer":
        for layer in (model[0], model[2]):
            clip_grad_norm_(layer.parameters(), 0.04)
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def stepped_gradients(one: Combination, rank: int, wrap: str) -> list[Tensor]:
    """What the optimizer was given by TrainStep, whole again where it was sharded."""
    plain = small_model(torch.float32)
    model: nn.Module = plain
    if wrap == "DDP":
        model = DistributedDataParallel(plain)
    elif wrap == "FSDP2":
        from torch.distributed.fsdp import fully_shard

        fully_shard(plain[0])
        fully_shard(plain[2])
        model = fully_shard(plain)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = TrainStep(
        model,
        optimizer,
        accumulate=len(SIZES[one.window][0]),
        clip=CLIPS[one.clip],
        precision=one.precision,  # type: ignore[arg-type]
    )
    for batch in step.over(batches_of(SIZES[one.window][rank], torch.float32, seed=rank)):
        loss = loss_of(model, batch)
        update = step(loss, weight=len(batch[0])) if one.window == "unequal" else step(loss)
    assert update is not None
    assert update.applied
    found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return [gradient.full_tensor() if wrap == "FSDP2" else gradient for gradient in found]


def on_one_rank(rank: int, wrap: str) -> list[list[Tensor]]:
    return [stepped_gradients(one, rank, wrap) for one in COMBINATIONS]


def disagreement(found: list[Tensor], right: list[Tensor]) -> float:
    """The largest error of any tensor, relative to that tensor's norm."""
    assert len(found) == len(right)
    return max(float((a - b).norm() / b.norm()) for a, b in zip(found, right, strict=True))

"""A small model, its data, and the gradient a plain loop gives it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from gradclinic import TrainStep

Batch = tuple[Tensor, Tensor]


def small_model(dtype: torch.dtype = torch.float64, seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)).to(dtype)


def batches_of(sizes: Sequence[int], dtype: torch.dtype = torch.float64, seed: int = 1) -> list[Batch]:
    generator = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(size, 5, generator=generator, dtype=torch.float64).to(dtype),
            torch.randn(size, 3, generator=generator, dtype=torch.float64).to(dtype),
        )
        for size in sizes
    ]


def loss_of(model: nn.Module, batch: Batch) -> Tensor:
    return nn.functional.mse_loss(model(batch[0]), batch[1])


def big_batch_gradient(model: nn.Module, batches: Sequence[Batch]) -> list[Tensor]:
    """The gradient of the mean over all samples, from one forward over all of them."""
    whole = (torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches]))
    return list(torch.autograd.grad(loss_of(model, whole), list(model.parameters())))


def gradients_of(model: nn.Module) -> list[Tensor]:
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]


def weights_of(model: nn.Module) -> list[Tensor]:
    return [tensor.clone() for tensor in model.state_dict().values()]


def same_bits(first: Sequence[Tensor], second: Sequence[Tensor]) -> bool:
    return len(first) == len(second) and all(map(torch.equal, first, second))


def train(step: TrainStep, model: nn.Module, batches: Iterable[Batch]) -> None:
    for batch in step.over(batches):
        step(loss_of(model, batch))

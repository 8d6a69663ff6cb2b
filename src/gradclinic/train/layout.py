"""Which parameters a step owns: their order, names, layers and groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

HALF_PRECISION = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Layout:
    """The parameters of the optimizers in their order. The lists run parallel."""

    parameters: tuple[Tensor, ...]
    names: tuple[str, ...]
    layers: tuple[int, ...]
    """Parameters held by one module share a number."""
    groups: tuple[int, ...]
    """Parameters of one optimizer group share a number."""
    uniform: bool
    """All on one device in one dtype, so that their norms can be stacked as they are."""


def unwrapped(module: nn.Module) -> nn.Module:
    """The user's own module, inside DistributedDataParallel and torch.compile."""
    while True:
        if isinstance(module, nn.parallel.DistributedDataParallel):
            module = module.module
        elif isinstance(inner := getattr(module, "_orig_mod", None), nn.Module):
            module = inner
        else:
            return module


def layout_of(models: Iterable[nn.Module], optimizers: Sequence[Optimizer]) -> Layout:
    named = {
        id(parameter): name for model in models for name, parameter in unwrapped(model).named_parameters()
    }
    parameters: list[Tensor] = []
    names: list[str] = []
    groups: list[int] = []
    group_number = 0
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                names.append(named.get(id(parameter), f"group {group_number} parameter {len(parameters)}"))
                parameters.append(parameter)
                groups.append(group_number)
            group_number += 1
    layer_numbers: dict[str, int] = {}
    layers = [layer_numbers.setdefault(name.rpartition(".")[0], len(layer_numbers)) for name in names]
    kinds = {(parameter.device, parameter.dtype) for parameter in parameters}
    return Layout(tuple(parameters), tuple(names), tuple(layers), tuple(groups), len(kinds) == 1)


def in_module(parameter: str, module: str) -> bool:
    """Whether a parameter is, by its name, this one or inside this module."""
    return parameter == module or parameter.startswith(module + ".")

"""The case's model in training, one step at a time; nothing else of the user's is touched."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, MultiheadAttention, Parameter, RNNBase
from torch.nn.modules.dropout import _DropoutNd
from torch.optim import Optimizer

from gradclinic.case import Case


class Trainee:
    """Steps the case's model in place. Restoring it afterwards is the experiment's duty."""

    def __init__(self, case: Case, optimizer: Optimizer | None = None) -> None:
        self.case = case
        self.optimizer = optimizer or case.make_optimizer()
        self.parameters = list(case.parameters().values())

    @property
    def rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def scale_rates(self, factor: float) -> None:
        """Multiply every group's rate, so that groups keep their proportions."""
        for group in self.optimizer.param_groups:
            group["lr"] = group["lr"] * factor

    def without_decay(self) -> Trainee:
        for group in self.optimizer.param_groups:
            if "weight_decay" in group:
                group["weight_decay"] = 0.0
        return self

    def step(self, batch: Any = None) -> float:
        """One update; the loss before it. A loss that is not finite is returned and not stepped on."""
        losses: list[float] = []

        def closure() -> Tensor:
            total = self.case.evaluate(batch=batch).total
            losses.append(float(total.detach()))
            set_gradients(total, self.parameters)
            return total.detach()

        # A closure, because optimizers such as LBFGS evaluate more than once in a step. The others
        # call it first and would step on a NaN, which is why the first value is looked at before.
        if type(self.optimizer).__name__ == "LBFGS":
            self.optimizer.step(closure)  # type: ignore[arg-type]
        else:
            with torch.enable_grad():
                closure()
            if math.isfinite(losses[0]):
                self.optimizer.step()
        return losses[0]


def loss_of(case: Case, batch: Any = None) -> float:
    """The objective on one batch, gradients enabled: it may take some itself, for a force or a penalty."""
    with torch.enable_grad():
        return float(case.evaluate(batch=batch).total.detach())


def set_gradients(total: Tensor, parameters: list[Parameter]) -> None:
    """What `backward` does, for these parameters only: a discriminator in the loss keeps its own."""
    grads: Sequence[Tensor | None] = [None] * len(parameters)
    if total.requires_grad:
        grads = torch.autograd.grad(total, parameters, allow_unused=True)
    for parameter, grad in zip(parameters, grads, strict=True):
        parameter.grad = grad


def quiet_dropout(model: Module) -> None:
    """Training mode with every dropout layer off."""
    model.train()
    for module in model.modules():
        if isinstance(module, _DropoutNd):
            module.eval()
        elif isinstance(module, (MultiheadAttention, RNNBase)):
            module.dropout = 0.0


@contextmanager
def modes(model: Module, training: bool) -> Iterator[None]:
    """The model in one mode, and each part back in its own afterwards."""
    before = {module: module.training for module in model.modules()}
    model.train(training)
    try:
        yield
    finally:
        for module, mode in before.items():
            module.training = mode

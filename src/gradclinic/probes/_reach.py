"""Which parameters get a gradient, and whether a gradient inside the loss was taken differentiably."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gradclinic.case import Case
from gradclinic.facts import Location
from gradclinic.facts.reach import GradientReach, InnerGradient, ParameterReach
from gradclinic.probes._fingerprint import fingerprint
from gradclinic.probes._restore import random_state, undisturbed
from gradclinic.probes._trainee import Trainee
from gradclinic.probes._tree import tensors
from gradclinic.probes._where import caller, module_line

STEPS = 4
"""A factor that starts at zero blocks its partner's gradient in the first step, not in the fourth."""
NUDGE = 1.001


def reach(case: Case) -> GradientReach:
    """A few steps of training, watching the gradient of every parameter."""
    inner = inner_gradients(case)
    with undisturbed(case):
        case.model.train()
        trainee = Trainee(case, torch.optim.Adam(list(case.parameters().values()), lr=1e-3))
        names = list(case.parameters())
        norms: dict[str, list[float | None]] = {name: [] for name in names}
        detached = False
        for _ in range(STEPS):
            try:
                trainee.step()
            except RuntimeError:
                # An inner gradient without create_graph frees what the outer backward needs: the
                # objective cannot be differentiated at all, and `inner` says why.
                if inner and not all(each.differentiable for each in inner):
                    break
                raise
            for name, parameter in zip(names, trainee.parameters, strict=True):
                grad = parameter.grad
                norms[name].append(None if grad is None else float(grad.norm()))
            detached = all(parameter.grad is None for parameter in trainee.parameters)
    parameters = tuple(
        ParameterReach(name, tuple(norms[name]), module_line(case.model, name.rpartition(".")[0]))
        for name in names
    )
    return GradientReach(parameters, inner, detached)


def inner_gradients(case: Case) -> tuple[InnerGradient, ...]:
    """Each `autograd.grad` the objective calls on tensors that are not weights."""
    with undisturbed(case), random_state() as rewind:
        case.model.train()
        plain = _Trace(case)
        calls = plain.run()
        found = []
        for index, (where, differentiable) in enumerate(calls):
            rewind()
            nudged = _Trace(case, nudge=index)
            nudged.run()
            # A sampler or an adversary feeds its gradient back into the model, and rightly detaches it.
            direct = nudged.loss != plain.loss and nudged.inputs == plain.inputs
            found.append(InnerGradient(where, differentiable, direct))
    return tuple(found)


class _Trace:
    """One evaluation of the objective with `autograd.grad` watched, one of its results nudged."""

    def __init__(self, case: Case, nudge: int | None = None) -> None:
        self.case, self.nudge = case, nudge
        self.loss = 0.0
        self.inputs = ""
        """A digest of what the model was given, call after call."""
        self.weights = {id(p) for p in case.model.parameters()}
        self.calls: list[tuple[Location | None, bool]] = []

    def run(self) -> list[tuple[Location | None, bool]]:
        with self._watched():
            self.loss = float(self.case.evaluate().total.detach())
        return self.calls

    @contextmanager
    def _watched(self) -> Iterator[None]:
        real = torch.autograd.grad

        def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            result = real(outputs, inputs, *args, **kwargs)
            wanted = tensors(inputs)
            if any(id(tensor) in self.weights for tensor in wanted):
                return result
            index = len(self.calls)
            self.calls.append((caller(), any(part.requires_grad for part in tensors(result))))
            if index == self.nudge:
                return tuple(part if part is None else part * NUDGE for part in result)
            return result

        def note(_module: object, given: tuple[Any, ...]) -> None:
            for tensor in tensors(given):
                self.inputs = fingerprint(tensor, self.inputs)

        hook = self.case.model.register_forward_pre_hook(note)
        torch.autograd.grad = grad
        try:
            yield
        finally:
            torch.autograd.grad = real
            hook.remove()

"""Loss and gradients of a model's variants against eager, in one number each."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradclinic.case import Case
from gradclinic.probes._restore import random_state, undisturbed


def mismatches(case: Case, tolerance: float) -> list[str]:
    """A sentence for each variant whose loss or gradient is not eager's."""
    variants: dict[str, Any] = dict(case.variants or {"torch.compile": torch.compile})
    with undisturbed(case), random_state() as rewind:
        loss, gradient = _measure(case, None)
        wrong = []
        for name, build in variants.items():
            rewind()
            theirs, compiled = _measure(case, build(case.model))
            if abs(theirs - loss) > tolerance * max(abs(loss), 1e-12):
                wrong.append(f"{name} has loss {theirs:.6g}, eager {loss:.6g}")
            error = float((compiled - gradient).norm() / gradient.norm().clamp_min(1e-30))
            if error > tolerance:
                wrong.append(f"the gradient of {name} is off by {error:.2%}")
    return wrong


def _measure(case: Case, model: Any) -> tuple[float, Tensor]:
    total = case.evaluate(model).total
    parameters = list(case.parameters().values())
    grads = torch.autograd.grad(total, parameters, allow_unused=True)
    flat = [
        torch.zeros(p.numel(), dtype=torch.float64) if g is None else g.detach().double().flatten().cpu()
        for p, g in zip(parameters, grads, strict=True)
    ]
    return float(total.detach()), torch.cat(flat)

"""What one forward and backward of a case holds."""

from __future__ import annotations

import torch
from torch import Tensor

from gradclinic.case import Case
from gradclinic.probes._restore import undisturbed
from gradclinic.probes._trainee import set_gradients
from gradclinic.probes._tree import tensors


def nonfinite(case: Case) -> list[str]:
    """What holds a NaN or an infinity, in the order it comes about."""
    found = [f"parameter {name}" for name, p in case.model.named_parameters() if _broken(p)]
    with undisturbed(case):
        case.model.train()
        evaluation = case.evaluate()
        if any(_broken(tensor) for tensor in tensors(evaluation.outputs)):
            found.append("the outputs")
        found += [f"the loss term {name}" for name, term in evaluation.terms.items() if _broken(term)]
        parameters = case.parameters()
        set_gradients(evaluation.total, list(parameters.values()))
        found += [f"the gradient of {name}" for name, p in parameters.items() if _broken(p.grad)]
    return found


def output_range(case: Case) -> tuple[float, float]:
    """The least and the largest entry of the outputs; a NaN is neither, and makes both NaN."""
    with undisturbed(case):
        parts = [t.detach().double().flatten() for t in tensors(case.outputs()) if t.numel()]
    joined = torch.cat(parts)
    return float(joined.min()), float(joined.max())


def _broken(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.is_floating_point() and not bool(torch.isfinite(tensor).all())

"""Which tensors of a model change in a few steps of training."""

from __future__ import annotations

from gradclinic.case import Case
from gradclinic.probes._fingerprint import fingerprint
from gradclinic.probes._restore import undisturbed
from gradclinic.probes._trainee import Trainee


def moved(case: Case, steps: int, decay: bool = True) -> dict[str, bool]:
    """For each parameter and buffer, whether training with the case's optimizer changed it.

    Weight decay moves what no gradient reaches: without it, what moves has learned.
    """
    with undisturbed(case):
        case.model.train()
        before = _tensors(case)
        trainee = Trainee(case) if decay else Trainee(case).without_decay()
        for _ in range(steps):
            trainee.step()
        after = _tensors(case)
    return {name: before[name] != after.get(name) for name in before}


def frozen(case: Case) -> set[str]:
    """Parameters that do not train, and the statistics of modules that have no others."""
    names = {name for name, parameter in case.model.named_parameters() if not parameter.requires_grad}
    for name, module in case.model.named_modules():
        own = list(module.parameters(recurse=False))
        if own and not any(parameter.requires_grad for parameter in own):
            prefix = f"{name}." if name else ""
            names |= {prefix + buffer for buffer, _ in module.named_buffers(recurse=False)}
    return names


def _tensors(case: Case) -> dict[str, str]:
    named = [*case.model.named_parameters(), *case.model.named_buffers()]
    return {name: fingerprint(tensor) for name, tensor in named}

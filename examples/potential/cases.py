"""Targets for `gradclinic probe`: the potential, healthy and with each documented fault.

gradclinic probe flow examples/potential/cases.py:water
gradclinic probe compile examples/potential/cases.py:ghost_slice
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from compiled import FAULTS, compile_potential
from gradclinic import Case
from model import Descriptor, Fitting, Potential
from periodic import Frame, make_frame

ATOMS, TYPES, CUTOFF = 6, 2, 3.0
TASKS = ("water", "ice", "steam")


def make_tasks(cutoffs: dict[str, float] | None = None) -> dict[str, Potential]:
    """One potential per task over the same networks, each with its own bias, case and statistics."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first = Descriptor(TYPES, 8, 3, CUTOFF), Fitting(8 * 3, TYPES, 16, torch.zeros(len(TASKS)))
        tasks = {}
        for number, task in enumerate(TASKS):
            descriptor = Descriptor(TYPES, 8, 3, (cutoffs or {}).get(task, CUTOFF))
            descriptor.embed, descriptor.type_embedding = first[0].embed, first[0].type_embedding
            descriptor.mean += 0.1 * torch.rand(TYPES, 4)
            descriptor.std += 0.5 * torch.rand(TYPES, 4)
            fitting = Fitting(8 * 3, TYPES, 16, torch.eye(len(TASKS))[number])
            fitting.net = first[1].net
            fitting.bias += torch.randn(TYPES)
            tasks[task] = Potential(descriptor, fitting).double()
    return tasks


def energy(outputs: dict[str, Tensor], frame: Frame) -> Tensor:
    return (outputs["energy"] - frame.energy).square() / len(frame.force)


def force(outputs: dict[str, Tensor], frame: Frame) -> Tensor:
    return (outputs["force"] - frame.force).square().mean()


def virial(outputs: dict[str, Tensor], frame: Frame) -> Tensor:
    return (outputs["virial"] - frame.virial).square().mean() / len(frame.force)


def make(fault: str = "", backend: str = "aot_eager") -> Case:
    """The ice task; its hand-compiled variant shares the graph that was recorded from water."""
    frame = make_frame(ATOMS, TYPES, CUTOFF)
    tasks = make_tasks({"water": 2.5} if fault == "another-tasks-constant" else None)
    shares = fault in ("", "another-tasks-constant", "buffer-not-promoted")
    return Case(
        tasks["ice"],
        frame,
        terms={"energy": energy, "force": force, "virial": virial},
        weights={"energy": 0.1, "virial": 0.1},
        variants={
            "by hand": lambda model: compile_potential(
                model, frame, fault, traced=tasks["water"] if shares else None, backend=backend
            )
        },
        name=f"potential, {FAULTS.get(fault, 'healthy')}",
    )


healthy = make
detach_kept = functools.partial(make, "detach-kept")
create_graph_off = functools.partial(make, "create-graph-off")
ghost_slice = functools.partial(make, "ghost-slice")
normalisation_off = functools.partial(make, "normalisation-off")
another_tasks_constant = functools.partial(make, "another-tasks-constant")
buffer_not_promoted = functools.partial(make, "buffer-not-promoted")
backend_errs = functools.partial(make, "backend-errs")
entry_without_grad = functools.partial(make, "entry-without-grad")


def water() -> Case:
    """The model alone, to see what each term reaches."""
    case = make()
    return Case(case.model, case.batch, terms=case.terms, weights=case.weights, name="water")

"""Which parameters does each term of the loss reach, and how strongly?

One forward and one backward per term. Terms come from the case, or are found by themselves in the
sum of a loss that is one number. A parameter that no term reaches never trains; one term that
drowns the others, or pulls against them, shows in the shares and the cosines.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from itertools import combinations

import torch
from torch import Tensor

from gradclinic.case import WHOLE, Case, Evaluation
from gradclinic.compile.gradients import reach
from gradclinic.facts import Location
from gradclinic.facts.flow import Conflict, GradientFlow, TermFlow
from gradclinic.facts.variants import Reach
from gradclinic.findings.table import Table
from gradclinic.probes._budget import Budget
from gradclinic.probes._labels import labelled, made_up
from gradclinic.probes._restore import undisturbed
from gradclinic.probes._terms import lines_remembered, objective_gradients
from gradclinic.probes._where import module_line
from gradclinic.probes.outcome import Outcome


def probe_flow(case: Case) -> GradientFlow:
    """Terms × parameters: nothing, zero or a gradient, with norms, shares and cosines."""
    parameters = case.parameters()
    with undisturbed(case):
        outputs = case.outputs()
        batch = labelled(case.batch, outputs)
        with lines_remembered():
            evaluation = Evaluation(outputs, case.score(outputs, batch), case.weights or {})
        gradients, where = objective_gradients(evaluation, parameters)
    terms = tuple(_term(name, grads, evaluation, where.get(name)) for name, grads in gradients.items())
    return GradientFlow(
        case=case.name or type(case.model).__name__,
        parameters=tuple(parameters),
        terms=terms,
        cosines=_cosines(gradients, parameters),
        found=bool(where),
        made_up=made_up(batch),
        places={name: module_line(case.model, name.rpartition(".")[0]) for name in parameters},
    )


def _term(
    name: str, grads: dict[str, Tensor | None], evaluation: Evaluation, where: Location | None
) -> TermFlow:
    norms = {key: 0.0 if grad is None else float(grad.double().norm()) for key, grad in grads.items()}
    whole = math.sqrt(sum(norm**2 for norm in norms.values()))
    value = evaluation.terms.get(name) if name != WHOLE or len(evaluation.terms) == 1 else None
    return TermFlow(
        name,
        None if value is None else float(value.detach()),
        {key: reach(grad, whole) for key, grad in grads.items()},
        norms,
        whole,
        where,
    )


def _cosines(
    gradients: dict[str, dict[str, Tensor | None]], parameters: Mapping[str, Tensor]
) -> tuple[Conflict, ...]:
    whole = {name: _flat(grads, parameters) for name, grads in gradients.items()}
    return tuple(
        Conflict(
            first, second, float(torch.nn.functional.cosine_similarity(whole[first], whole[second], dim=0))
        )
        for first, second in combinations(gradients, 2)
        if whole[first].any() and whole[second].any()
    )


def _flat(grads: dict[str, Tensor | None], like: Mapping[str, Tensor]) -> Tensor:
    parts = [torch.zeros_like(like[name]) if grad is None else grad for name, grad in grads.items()]
    return torch.cat([part.detach().double().flatten() for part in parts])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parameters",
        action="store_true",
        help="show every parameter, not only those something is wrong with",
    )


def run(case: Case, args: argparse.Namespace, budget: Budget) -> Outcome:
    budget.progress("one backward per loss term", 0.0)
    flow = probe_flow(case)
    return Outcome((flow,), conclusion(flow), tables(flow, every=args.parameters))


def conclusion(flow: GradientFlow) -> str:
    counted = len(flow.parameters)
    terms = "one term" if len(flow.terms) == 1 else f"{len(flow.terms)} terms"
    if not flow.unreached:
        return f"every one of {counted} parameters is reached by at least one of {terms}"
    listed = ", ".join(flow.unreached[:3]) + (", …" if len(flow.unreached) > 3 else "")
    return f"{len(flow.unreached)} of {counted} parameters are reached by no term: {listed}"


def tables(flow: GradientFlow, *, every: bool = False) -> tuple[Table, ...]:
    rows = tuple(
        (
            term.name,
            f"{term.reached}/{len(flow.parameters)}",
            "" if term.value is None else f"{term.value:.3g}",
            f"{term.norm:.3g}",
            f"{flow.share(term):.1%}",
            str(term.where or ""),
        )
        for term in flow.terms
    )
    return (
        Table(
            "gradient of each loss term",
            ("term", "reached", "value", "norm", "share", "at"),
            rows,
            _notes(flow),
        ),
        *_by_parameter(flow, every),
    )


def _by_parameter(flow: GradientFlow, every: bool) -> tuple[Table, ...]:
    shown = [
        name for name in flow.parameters if every or any(t.reach[name] is not Reach.VALUE for t in flow.terms)
    ]
    if not shown:
        return ()
    cell = {Reach.NONE: "none", Reach.ZERO: "zero"}
    rows = tuple(
        (name, *(cell.get(term.reach[name], f"{term.norms[name]:.3g}") for term in flow.terms))
        for name in shown
    )
    title = "by parameter" if every else "parameters that a term does not reach"
    return (Table(title, ("parameter", *(term.name for term in flow.terms)), rows),)


def _notes(flow: GradientFlow) -> tuple[str, ...]:
    notes = []
    if flow.found:
        notes.append("the terms were found in the sum that the loss is; names come from its source line")
    if flow.made_up:
        notes.append(
            f"made-up labels for {', '.join(flow.made_up)}: what is reached is right, values mean nothing"
        )
    notes += [
        f"{c.first} and {c.second} pull against each other (cosine {c.cosine:.2f})" for c in flow.conflicts
    ]
    return tuple(notes)

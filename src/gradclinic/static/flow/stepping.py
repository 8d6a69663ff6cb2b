"""What a call of `step` does: it may compute the loss once more, and it changes weights in place."""

from __future__ import annotations

import ast

from gradclinic.static.flow.functions import call_function
from gradclinic.static.flow.machine import Machine, Stepped
from gradclinic.static.flow.values import STEPS, Weights
from gradclinic.static.values import Func, Unknown, Value
from gradclinic.static.walk import Arguments


def stepped(machine: Machine, base: Value, args: Arguments, node: ast.Call) -> None:
    """`optimizer.step()`, `optimizer.step(closure)`, `scaler.step(optimizer)`"""
    for value in args.all():
        if isinstance(value, Func) and value.node not in machine.active:
            call_function(machine, value, Arguments(), node)
    for value in (base, *args.positional):
        held = value.attrs.get(STEPS) if isinstance(value, Unknown) else None
        if isinstance(held, Weights):
            uses, log = len(machine.log.uses), machine.log
            log.steps.append(Stepped(machine.at(node), held.owners, uses, machine.ids, machine.branch))

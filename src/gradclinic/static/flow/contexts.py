"""`with` blocks that switch gradients off and on."""

from __future__ import annotations

import ast
from collections.abc import Callable

from gradclinic.static.flow.expressions import evaluate, truth
from gradclinic.static.flow.machine import Machine
from gradclinic.static.flow.torch_calls import switch_anomaly
from gradclinic.static.flow.values import Flow
from gradclinic.static.syntax import last_name, names_in
from gradclinic.static.values import NONE, Const, Value
from gradclinic.static.walk import Arguments

_SWITCHES = frozenset({"no_grad", "inference_mode", "set_grad_enabled", "enable_grad"})


def enter(machine: Machine, node: ast.expr) -> tuple[Value, Callable[[], None]]:
    """The value bound by `as`, and what to do on leaving."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return enter(machine, node.values[-1])  # `autocast() and no_grad()`: all are true
    if isinstance(node, ast.IfExp):
        return _enter_either(machine, node)
    name = last_name(node)
    if not isinstance(node, ast.Call):
        return (NONE, _off(machine, node)) if name == "no_grad" else (evaluate(machine, node), _nothing)
    if name in ("no_grad", "inference_mode"):
        enabled = truth(evaluate(machine, node.args[0])) if node.args else True
        return NONE, _switched(machine, node, on=None if enabled is None else not enabled)
    if name == "set_grad_enabled" and node.args:
        return NONE, _switched(machine, node, on=truth(evaluate(machine, node.args[0])))
    if name == "enable_grad":
        return NONE, _switched(machine, node, on=True)
    if name in ("detect_anomaly", "set_detect_anomaly"):
        return NONE, _watched(machine, node)
    if name == "scale_loss" and node.args:
        loss = evaluate(machine, node.args[0])
        return loss if isinstance(loss, Flow) else Const(name), _nothing
    return evaluate(machine, node), _nothing


def _enter_either(machine: Machine, node: ast.IfExp) -> tuple[Value, Callable[[], None]]:
    """`with torch.no_grad() if frozen else nullcontext():`"""
    known = truth(evaluate(machine, node.test))
    if known is not None:
        return enter(machine, node.body if known else node.orelse)
    if not _SWITCHES.isdisjoint(names_in(node)):
        return NONE, _switched(machine, node, on=None)
    return evaluate(machine, node), _nothing


def _switched(machine: Machine, node: ast.expr, *, on: bool | None) -> Callable[[], None]:
    if on is False:
        return _off(machine, node)
    before, perhaps = machine.no_grad, machine.perhaps_no_grad
    machine.no_grad = []
    if on is None:
        machine.perhaps_no_grad += 1

    def leave() -> None:
        machine.no_grad, machine.perhaps_no_grad = before, perhaps

    return leave


def _watched(machine: Machine, node: ast.Call) -> Callable[[], None]:
    before = machine.anomaly
    args = Arguments([evaluate(machine, argument) for argument in node.args[:1]])
    switch_anomaly(machine, args if last_name(node) == "set_detect_anomaly" else _ON, machine.at(node))

    def leave() -> None:
        machine.anomaly = before

    return leave


_ON = Arguments([Const(True)])


def _off(machine: Machine, node: ast.expr) -> Callable[[], None]:
    before = machine.no_grad
    machine.no_grad = [*before, machine.at(node)]

    def leave() -> None:
        machine.no_grad = before

    return leave


def _nothing() -> None:
    pass

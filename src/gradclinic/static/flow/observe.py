"""One file, executed on abstract tensors: the facts about its losses and graphs."""

from __future__ import annotations

import ast
import contextlib
import re
from bisect import bisect_left

from gradclinic.facts import Location, LossCall
from gradclinic.static import words
from gradclinic.static.flow.expressions import evaluate
from gradclinic.static.flow.functions import call_function
from gradclinic.static.flow.graph_facts import graph_cases
from gradclinic.static.flow.hierarchies import call_inherited, call_method_of
from gradclinic.static.flow.kept_facts import kept_cases
from gradclinic.static.flow.loss_facts import loss_cases
from gradclinic.static.flow.machine import MOST_STEPS, MOST_STEPS_ELSEWHERE, Machine, TooLong
from gradclinic.static.flow.statements import execute
from gradclinic.static.flow.torch_names import LOSS_FUNCTIONS, LOSSES
from gradclinic.static.flow.write_facts import write_cases
from gradclinic.static.values import ClassDef, Frame, Func, FunctionNode
from gradclinic.static.walk import Arguments, BreakLoop, ContinueLoop, ReturnValue, Stop

Cases = tuple[tuple[object, ...], ...]
Member = tuple[FunctionNode, ast.ClassDef | None]
"""A function, and the class it is a method of."""
_LEFT = (ReturnValue, BreakLoop, ContinueLoop, Stop)
_EVERYWHERE = frozenset({"__init__", "__call__", "forward", "main", "run"})
"""Names of functions that say nothing of which one is called."""
_NAMED_LOSS = re.compile(rf"(\w+)\s*=\s*[\w.]*\b(?:{'|'.join(LOSSES)})\(")
_CALLED = (*LOSS_FUNCTIONS, *LOSSES, "backward")
_CALL = re.compile(r"""(\w+)[\]"')]*\s*\(""")
_REMEMBERS = re.compile(
    r"hidden\w*[\w\s,.()\[\]]*=\s*[\w.]+\(|\w_hidden\(|\.hidden\b|"
    r"lstm|gru\b|rnn|recurren|\bhx\b|stateful",
    re.I,
)
_RETAINS = re.compile(r"backward\([^\n]*retain_graph\s*=\s*True")
_FREEZES = re.compile(r"requires_grad\w*\s*[=(]\s*False")


def flow_cases(tree: ast.Module, text: str, path: str, *, computes: bool = True) -> Cases:
    """What the file's losses are given and what becomes of them. Empty where nothing can be told.

    Without `computes` only other files that it hands a model to have any.
    """
    frozen = "freeze" in text or bool(_FREEZES.search(text))
    curious = "nll_loss" in text or "NLLLoss" in text or bool(_RETAINS.search(text))
    machine = Machine(path, Frame(""), execute, evaluate, path, freezes=frozen, reads_all=curious)
    machine.steps = MOST_STEPS if computes else MOST_STEPS_ELSEWHERE
    try:
        _run(machine, tree, text)
    except (TooLong, RecursionError):
        machine.log.finished = False
    log = machine.log
    log.remembers = bool(log.uses) and bool(log.marks) and bool(_REMEMBERS.search(text))
    # A test goes a few steps, and may well retain and keep what it wants to look at.
    costs = () if words.TEST_FILE.search(path) else kept_cases(log)
    cases = (*loss_cases(log), *graph_cases(log), *write_cases(log), *costs)
    return tuple(case for case in cases if _place(case[0]).path == path or _is_told_here(case))


def _is_told_here(case: tuple[object, ...]) -> bool:
    """A loss called in another file, which does not know what it is given: the model is made in this one."""
    return all(isinstance(fact, LossCall) and fact.made_by for fact in case)


def _place(fact: object) -> Location:
    """Where a fact is told; what happens in other files is told when those are read."""
    place = getattr(fact, "where", None) or getattr(fact, "used", None) or getattr(fact, "backward", None)
    assert isinstance(place, Location)
    return place


def _run(machine: Machine, tree: ast.Module, text: str) -> None:
    top = machine.frame
    for statement in tree.body:
        try:
            execute(machine, [statement])
        except _LEFT:
            break
    anomaly = machine.anomaly
    for function, owner in _telling_functions(tree, text):
        if function not in machine.reached:
            machine.frame, machine.anomaly = top, anomaly
            with contextlib.suppress(*_LEFT):
                _run_alone(machine, function, owner)
    machine.frame, machine.anomaly = top, anomaly
    with contextlib.suppress(*_LEFT):
        call_inherited(machine)


def _run_alone(machine: Machine, function: FunctionNode, owner: ast.ClassDef | None) -> None:
    """A function that nothing in sight calls, with parameters nobody knows."""
    found = machine.frame.vars.get(owner.name if owner else function.name)
    if isinstance(found, ClassDef):
        method = found.attrs.get(function.name)
        if isinstance(method, Func) and method.node is function:
            call_method_of(machine, found, method)
    elif isinstance(found, Func) and found.node is function:
        call_function(machine, found, Arguments(partial=True), function)


def _telling_functions(tree: ast.Module, text: str) -> list[Member]:
    """Functions that call a loss or backward themselves, the outermost ones; first, whoever loops over one.

    The text is asked, not the tree: which functions are worth running is no judgement, and must be quick.
    """
    lines = text.splitlines()
    named = [_NAMED_LOSS.search(line) for line in lines if "Loss(" in line]
    losses = (*_CALLED, *{match[1] for match in named if match})
    telling = [number for number, line in enumerate(lines, 1) if "(" in line and _calls(line, losses)]
    found: list[Member] = []
    others: list[tuple[Member, str]] = []
    for node in tree.body:
        owner = node if isinstance(node, ast.ClassDef) else None
        for member in owner.body if owner else [node]:
            if not isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            next_one = bisect_left(telling, member.lineno)
            if next_one < len(telling) and telling[next_one] <= (member.end_lineno or 0):
                found.append((member, owner))
            else:
                others.append(((member, owner), "\n".join(lines[member.lineno - 1 : member.end_lineno])))
    return [*_looping_over(found, others), *found]


def _calls(line: str, losses: tuple[str, ...]) -> bool:
    return any(
        name.endswith(losses) and not name.endswith("is_backward") and f"def {name}" not in line
        for name in _CALL.findall(line)
    )


def _looping_over(found: list[Member], others: list[tuple[Member, str]]) -> list[Member]:
    """Functions that call one of those found: what it returns may pile up in their loops."""
    asked = [f"{function.name}(" for function, _ in found if function.name not in _EVERYWHERE]
    return [
        member
        for member, body in others
        if ("for " in body or "while " in body) and any(call in body for call in asked)
    ]

"""Which functions of a file are run, on what: all that its own code calls, and those that nothing calls."""

from __future__ import annotations

import ast
import contextlib
import re
from bisect import bisect_left

from gradclinic.static.flow.functions import call_function
from gradclinic.static.flow.hierarchies import call_inherited, call_method_of, call_method_on
from gradclinic.static.flow.machine import Machine
from gradclinic.static.flow.statements import execute
from gradclinic.static.flow.torch_names import LOSS_FUNCTIONS, LOSSES
from gradclinic.static.values import ClassDef, Func, FunctionNode
from gradclinic.static.walk import Arguments, BreakLoop, ContinueLoop, ReturnValue, Stop

MOST_BUILT = 4
Member = tuple[FunctionNode, ast.ClassDef | None]
"""A function, and the class it is a method of."""
_LEFT = (ReturnValue, BreakLoop, ContinueLoop, Stop)
_EVERYWHERE = frozenset({"__init__", "__call__", "forward", "main", "run"})
"""Names of functions that say nothing of which one is called."""
_NAMED_LOSS = re.compile(
    rf"(\w+)\s*=\s*[\w.]*\b(?:(?:{'|'.join(LOSSES)})\(|(?:{'|'.join(LOSS_FUNCTIONS)})\b(?!\())"
)
_NAMING = ("Loss(", "=F.", "= F.", "functional.")
_CALLED = (*LOSS_FUNCTIONS, *LOSSES, "backward")
_SIGNS = ("_loss", "Loss", "entropy", "kl_div", "backward")
"""One of them is in each of those: few words are looked for many times as fast as many."""
_CALL = re.compile(r"""(\w+)[\]"')]*\s*\(""")


def run(machine: Machine, tree: ast.Module, text: str, calls: tuple[str, ...] = ()) -> None:
    """The file itself, then the functions in it that call a loss, backward, or something named in `calls`."""
    top = machine.frame
    for statement in tree.body:
        try:
            execute(machine, [statement])
        except _LEFT:
            break
    anomaly = machine.anomaly
    for function, owner in _telling_functions(tree, text, calls):
        if function not in machine.reached:
            machine.frame, machine.anomaly = top, anomaly
            machine.log.root += 1
            with contextlib.suppress(*_LEFT):
                _run_alone(machine, function, owner)
    machine.frame, machine.anomaly = top, anomaly
    machine.log.root += 1
    with contextlib.suppress(*_LEFT):
        call_inherited(machine)


def run_built(machine: Machine, tree: ast.Module, text: str) -> None:
    """The methods that tell something, on the objects that were built, if nothing in sight calls them."""
    top, anomaly = machine.frame, machine.anomaly
    names = {(owner.name, function.name) for function, owner in _telling_functions(tree, text, ()) if owner}
    for instance in machine.built[:MOST_BUILT]:
        for name, method in list(instance.cls.attrs.items()):
            told = (instance.cls.node.name, name) in names
            if isinstance(method, Func) and told and method.node not in machine.reached:
                machine.frame, machine.anomaly = top, anomaly
                with contextlib.suppress(*_LEFT):
                    call_method_on(machine, instance, method)


def _run_alone(machine: Machine, function: FunctionNode, owner: ast.ClassDef | None) -> None:
    """A function that nothing in sight calls, with parameters nobody knows."""
    found = machine.frame.vars.get(owner.name if owner else function.name)
    if isinstance(found, ClassDef):
        method = found.attrs.get(function.name)
        if isinstance(method, Func) and method.node is function:
            call_method_of(machine, found, method)
    elif isinstance(found, Func) and found.node is function:
        machine.give_back(call_function(machine, found, Arguments(partial=True), function))


def _telling_functions(tree: ast.Module, text: str, calls: tuple[str, ...]) -> list[Member]:
    """Functions that make one of the calls themselves, the outermost ones; first, whoever loops over one.

    The text is asked, not the tree: which functions are worth running is no judgement, and must be quick.
    """
    lines = text.split("\n")
    named = [_NAMED_LOSS.search(lines[number - 1]) for number in _lines_with(_NAMING, text)]
    others = {*calls, *(match[1] for match in named if match)}
    losses = (*_CALLED, *others)
    telling = [n for n in _lines_with((*_SIGNS, *others), text) if _calls(lines[n - 1], losses)]
    found: list[tuple[Member, str]] = []
    rest: list[tuple[Member, str]] = []
    for node in tree.body:
        owner = node if isinstance(node, ast.ClassDef) else None
        for member in owner.body if owner else [node]:
            if not isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            next_one = bisect_left(telling, _first_line(member))
            tells = next_one < len(telling) and telling[next_one] <= (member.end_lineno or 0)
            body = "\n".join(lines[member.lineno - 1 : member.end_lineno])
            (found if tells else rest).append(((member, owner), body))
    own = [member for member, _ in found]
    asked = [
        one
        for one in own
        if any(_asks(body, whose, one) for (other, whose), body in found if other is not one[0])
    ]
    return [*_callers_of(own, rest), *(one for one in own if one not in asked), *asked]


def _first_line(function: FunctionNode) -> int:
    """Behind its docstring, which may well show how others go backward."""
    described = ast.get_docstring(function, clean=False) is not None
    return (function.body[0].end_lineno or 0) + 1 if described else function.lineno


def _asks(body: str, owner: ast.ClassDef | None, member: Member) -> bool:
    """Whether a method calls this one of its class: it knows what that one is given."""
    function, whose = member
    return (
        owner is whose is not None and function.name not in _EVERYWHERE and f"self.{function.name}(" in body
    )


def _lines_with(names: tuple[str, ...], text: str) -> list[int]:
    """The numbers of the lines that have one of the words, which most have not."""
    places: set[int] = set()
    for name in names:
        place = text.find(name)
        while place >= 0:
            places.add(place)
            place = text.find(name, place + 1)
    found: list[int] = []
    number, reached = 1, 0
    for place in sorted(places):
        number += text.count("\n", reached, place)
        reached = place
        if not found or found[-1] != number:
            found.append(number)
    return found


def _calls(line: str, losses: tuple[str, ...]) -> bool:
    return any(
        name.endswith(losses) and not name.endswith("is_backward") and f"def {name}" not in line
        for name in (_CALL.findall(line) if not line.lstrip().startswith("#") else ())
    )


def _callers_of(found: list[Member], others: list[tuple[Member, str]]) -> list[Member]:
    """Functions that call one of those found: what it returns may pile up in their loops, and a method of
    the same class, as `training_step`, knows what its `self.adversarial_loss(...)` is given."""
    asked = [f"{function.name}(" for function, _ in found if function.name not in _EVERYWHERE]
    return [
        member
        for member, body in others
        if any(_asks(body, member[1], one) for one in found)
        or (("for " in body or "while " in body) and any(call in body for call in asked))
    ]

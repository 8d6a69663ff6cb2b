"""Methods that classes inherit: run on one of each class that has them, for that knows what they lack."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradclinic.static.flow.functions import call_function, instantiate
from gradclinic.static.flow.machine import Machine
from gradclinic.static.flow.neighbours import ENDS_SOMEHOW, imported
from gradclinic.static.flow.preparing import prepared
from gradclinic.static.flow.torch_names import LOSSES
from gradclinic.static.flow.values import Loss
from gradclinic.static.syntax import last_name, names_in, nodes_in
from gradclinic.static.values import ClassDef, Frame, Func, Instance, Lib, Value
from gradclinic.static.walk import Arguments

MOST_HEIRS = 3


def base_of(machine: Machine, node: ast.ClassDef, base: Value) -> Value:
    """The class behind a base that another file of the project defines."""
    if not isinstance(base, Lib) or base.name.startswith(("torch", "builtins.")):
        return base
    chooses = any(isinstance(part, ast.Call) and last_name(part.func) in LOSSES for part in nodes_in(node))
    found = imported(machine, base.name, about=None if chooses else ENDS_SOMEHOW)
    return found if isinstance(found, ClassDef) else base


def call_method_of(machine: Machine, cls: ClassDef, method: Func) -> None:
    """On one of the class, or of each class below it that has the method as it is."""
    heirs = [
        heir for heir in _classes(machine.frame) if heir is not cls and heir.find(_name(method)) is method
    ]
    below = [heir for heir in heirs if not any(heir in other.bases for other in heirs)]
    for owner in below[:MOST_HEIRS] or [cls]:
        made = next((one for one in machine.built if one.cls is owner), None)
        if made is not None:
            # Of several one is enough: a backward of each would seem to go on with the last one's graph.
            call_method_on(machine, made, method)
            continue
        call_method_on(machine, _made_up(machine, owner, method), method)
        machine.built = [one for one in machine.built if one.cls is not owner]


def _made_up(machine: Machine, cls: ClassDef, method: Func) -> Instance:
    """One that the program does not make itself, the same for all of its methods."""
    made = machine.made_up.get(cls.node)
    if made is None:
        made = machine.made_up[cls.node] = instantiate(machine, cls, Arguments(partial=True), method.node)
    return made


def call_method_on(machine: Machine, instance: Instance, method: Func) -> None:
    """On one that the program itself has made; who calls it is out of sight, as a framework is.

    What a method leaves in it, the next does not see: in which order they are called is not known.
    """
    copy = Instance(instance.cls, instance.name)
    copy.attrs = dict(instance.attrs)
    _call(machine, copy, method)


def call_inherited(machine: Machine) -> None:
    """What a class of the file chose its loss for: methods of other files that call it."""
    for cls in _classes(machine.frame):
        foreign = [method for method in _inherited(cls) if method.node not in machine.reached]
        if not foreign:
            continue
        instance = instantiate(machine, cls, Arguments(partial=True), cls.node)
        losses = {name for name, value in instance.attrs.items() if isinstance(value, Loss)}
        for method in foreign if losses else ():
            if cls.find(_name(method)) is method and _calls(method, losses):
                _call(machine, instance, method)


def _classes(frame: Frame) -> list[ClassDef]:
    """Those that the file itself defines."""
    return [value for value in frame.vars.values() if isinstance(value, ClassDef) and value.frame is frame]


def _inherited(cls: ClassDef) -> Iterator[Func]:
    for base in cls.bases:
        if isinstance(base, ClassDef):
            if base.frame.module.path:
                yield from (member for member in base.attrs.values() if isinstance(member, Func))
            yield from _inherited(base)


def _calls(method: Func, losses: set[str]) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in losses
        for node in nodes_in(method.node)
    )


def _by_framework(cls: ClassDef) -> bool:
    """Whether Lightning calls `backward` with what `training_step` gives, once for every batch."""
    lightning = any(base.endswith("LightningModule") for base in cls.outside_bases())
    return lightning and "automatic_optimization" not in names_in(cls.node)


def _name(method: Func) -> str:
    return method.qualname.rpartition(".")[2]


def _call(machine: Machine, instance: Instance, method: Func) -> None:
    step = instance.cls.find("training_step")
    if _name(method) == "backward" and isinstance(step, Func) and _by_framework(instance.cls):
        for _ in range(2):
            loss = call_function(machine, step.of(instance), Arguments(partial=True), step.node)
            call_function(machine, method.of(instance), Arguments([loss], partial=True), method.node)
            machine.log.marks += 1  # for it steps and clears
        return
    given = prepared(machine, instance, method)
    result = call_function(machine, method.of(instance), Arguments(keywords=given, partial=True), method.node)
    machine.give_back(result)

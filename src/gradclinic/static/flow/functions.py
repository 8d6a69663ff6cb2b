"""Functions and classes of the project, entered with what they are given."""

from __future__ import annotations

import ast
import re

from gradclinic.static import words
from gradclinic.static.flow.bases import build_below
from gradclinic.static.flow.fitting import loss_of
from gradclinic.static.flow.joining import join_returned
from gradclinic.static.flow.machine import DEEPEST_CALL, Machine
from gradclinic.static.flow.values import PERHAPS_A_GRAPH, Layer, Loss, flows_in, shadowed
from gradclinic.static.syntax import is_left_open, last_name
from gradclinic.static.values import NONE, ClassDef, Const, Frame, Func, Instance, Map, Seq, Unknown, Value
from gradclinic.static.walk import Arguments, ReturnValue, Stop

NO_GRAD = ("no_grad", "inference_mode")
_KEEPS = frozenset({"append", "update", "setdefault", "__setitem__", "setattr", "print"})


def is_module(cls: ClassDef) -> bool:
    return any(
        name.endswith(("nn.Module", "LightningModule", "PreTrainedModel")) or name == "Module"
        for name in cls.outside_bases()
    )


def replaces_output(hook: Value) -> bool:
    """Whether a forward hook may give something back: that is what the model gives then."""
    if not isinstance(hook, Func):
        return True
    if isinstance(hook.node, ast.Lambda):
        return last_name(hook.node.body) not in _KEEPS
    return any(isinstance(part, ast.Return) and part.value is not None for part in ast.walk(hook.node))


def instantiate(machine: Machine, cls: ClassDef, args: Arguments, node: ast.AST) -> Instance:
    instance = Instance(cls, cls.node.name)
    if (cls.frame.module.path or machine.home) == machine.asked:
        machine.built.append(instance)
    initialise = cls.find("__init__")
    build_below(instance, Arguments() if isinstance(initialise, Func) else args)
    if isinstance(initialise, Func):
        call_function(machine, initialise.of(instance), args, node)
    else:
        # A record: whoever gets it may go on with what is in it.
        live = [flow for value in args.all() for flow in flows_in(value) if flow.grad is not False]
        machine.log.handed_out += [(len(machine.log.uses), flow) for flow in live]
        names = [
            s.target.id
            for s in cls.node.body
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        ]
        instance.attrs.update(zip(names, args.positional, strict=False))
        instance.attrs.update(args.keywords)
    return instance


def call_function(machine: Machine, func: Func, args: Arguments, node: ast.AST) -> Value:
    machine.reached.add(func.node)
    path = f"{func.qualname}()"
    if func.node in machine.active or len(machine.active) > DEEPEST_CALL or is_left_open(func.node):
        return shadowed(path)
    frame = Frame(func.qualname, func.frame, owner=func)
    bind_parameters(machine, func, args, frame)
    given = [flow for value in args.all() for flow in flows_in(value)]
    machine.handed.append((machine.at(node) if isinstance(node, ast.Call) else None, given))
    outer, machine.frame = machine.frame, frame
    before, machine.path = machine.path, frame.module.path or machine.home
    quiet = any(name.rsplit(".", 1)[-1] in NO_GRAD for name in func.decorators)
    gradients = machine.no_grad
    if quiet:
        machine.no_grad = [*gradients, machine.at(func.node)]
    machine.active.append(func.node)
    machine.returned.append([])
    machine.narrowed.append(False)
    try:
        return _run(machine, func, path)
    finally:
        machine.narrowed.pop()
        machine.returned.pop()
        machine.active.pop()
        machine.handed.pop()
        machine.no_grad = gradients
        machine.frame, machine.path = outer, before


def _run(machine: Machine, func: Func, path: str) -> Value:
    if isinstance(func.node, ast.Lambda):
        return machine.evaluate(machine, func.node.body)
    values = machine.returned[-1]
    try:
        machine.execute(machine, func.node.body)
    except ReturnValue:
        pass
    except Stop:
        if not values:
            raise
    if not values:
        return NONE
    result = values[0]
    for other in values[1:]:
        result = join_returned(result, other, path)
    return result


def bind_parameters(machine: Machine, func: Func, args: Arguments, frame: Frame) -> None:
    spec = func.node.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    given = list(args.positional)
    if func.bound is not None and names:
        given.insert(0, func.bound)
    frame.vars.update(zip(names, given, strict=False))
    if spec.vararg:
        frame.vars[spec.vararg.arg] = Seq(given[len(names) :]) if not args.partial else shadowed("*args")
    every = [*names, *(a.arg for a in spec.kwonlyargs)]
    frame.vars.update({name: value for name, value in args.keywords.items() if name in every})
    if spec.kwarg:
        rest = {name: value for name, value in args.keywords.items() if name not in every}
        frame.vars[spec.kwarg.arg] = Map(dict(rest.items()))
    defaults: dict[str, ast.expr | None] = dict(zip(reversed(names), reversed(spec.defaults), strict=False))
    defaults.update({a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)})
    for parameter in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        name = parameter.arg
        if name not in frame.vars:
            default = defaults.get(name)
            usual = _default(machine, func, name, default) if default is not None else None
            if usual is not None and (not args.partial or isinstance(usual, Loss)):
                frame.vars[name] = usual
            else:
                frame.vars[name] = _of_nobody(parameter, default)


def _of_nobody(parameter: ast.arg, default: ast.expr | None) -> Value:
    """What a parameter is when nobody in sight gives it anything."""
    name = parameter.arg
    if _is_setting(parameter, default):
        return Unknown(name)
    return Unknown(name, holds=(PERHAPS_A_GRAPH,)) if _DATA_NAME.match(name) else shadowed(name)


def _is_setting(parameter: ast.arg, default: ast.expr | None) -> bool:
    """Whether it takes a number or a word, not a tensor: by what it is without being given, or said to be."""
    usual = default.value if isinstance(default, ast.Constant) else None
    said = _PLAIN_TYPE.fullmatch(ast.unparse(parameter.annotation)) if parameter.annotation else None
    named = words.SETTING_NAME.search(parameter.arg) or _NUMBER_NAME.match(parameter.arg)
    return bool(usual) or usual is False or bool(said or named)


_PLAIN_TYPE = re.compile(r"(Optional\[)?(int|float|bool|str|(np|numpy)\.ndarray|ndarray)\]?( \| None)?")
_NUMBER_NAME = words.Pattern(r"(n|num|max|min|use|is)_|(lr|eps|epsilon|gamma|device|epochs?)$")


_DATA_NAME = words.Pattern(r"((mini_?)?batch(_data)?|labels?|images?|imgs?|input_ids|attention_mask)$")
"""What comes from a loader, and brings no graph along that another has a part of."""


def _default(machine: Machine, func: Func, name: str, default: ast.expr) -> Value:
    """What stands in a signature: a number, or a layer or loss of torch made for all calls."""
    if not isinstance(default, (ast.Constant, ast.Call, ast.Attribute)):
        return Unknown(name)
    outer, machine.frame = machine.frame, func.frame
    path, machine.path = machine.path, func.frame.module.path or machine.home
    try:
        value = machine.evaluate(machine, default)
    finally:
        machine.frame, machine.path = outer, path
    if isinstance(value, (Const, Layer, Loss)):
        return value
    return loss_of(value) or Unknown(name)

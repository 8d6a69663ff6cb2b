"""Schedules that a module of Lightning gives back, and how often it asks for them to be advanced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts import Location
from gradclinic.facts.rates import PacedSchedule
from gradclinic.static import words
from gradclinic.static.syntax import last_name, names_in, nodes_in

_LENGTH_AT = {"CosineAnnealingLR": 1, "OneCycleLR": 2, "PolynomialLR": 1}
_LENGTH_OF_BUILDERS_AT = 2
_COUNTS_UPDATES = words.Pattern(
    r"^(estimated_stepping_batches|(num|total|max|n)_?(train(ing)?_?)?steps|t_total|train(ing)?_steps)$", re.I
)
_COUNTS_BATCHES = words.Pattern(r"^(train|data)_?(data)?_?(loader|dl)$|^(steps|batches)_per_epoch$", re.I)
_COUNTS_EPOCHS = words.Pattern(r"^(num|max|n|total)?_?epochs?$", re.I)
_OF_SHORTER_TIMES = words.Pattern(
    r"step|batch|iter|loader|len|size|per_|accum|data|update|sample|ticks?|device|gpu", re.I
)
_ADVANCED_BY_HAND = ("automatic_optimization", "lr_schedulers(", "lr_scheduler_step", "lr_scheduler_configs")
Made = dict[str, ast.expr]


def may_tell(text: str) -> bool:
    if "def configure_optimizers" not in text or "ightning" not in text:
        return False
    return not any(word in text for word in _ADVANCED_BY_HAND)


def read(tree: ast.Module, text: str, path: str) -> Iterator[PacedSchedule]:
    for cls in (node for node in nodes_in(tree) if isinstance(node, ast.ClassDef)):
        for method in cls.body:
            if isinstance(method, ast.FunctionDef) and method.name == "configure_optimizers":
                made = _made_in(method)
                for call, interval in dict(_given_back(method, made)).items():
                    sized = _sized_in(call, made)
                    if sized is not None and sized != interval:
                        function = f"{cls.name}.{method.name}"
                        where = Location(path, call.lineno, call.col_offset, function)
                        yield PacedSchedule(last_name(call.func), sized, interval, where)


def _made_in(method: ast.FunctionDef) -> Made:
    """What each name stands for that is given a value once, and never a part of one."""
    found: dict[str, list[ast.expr | None]] = {}
    for node in nodes_in(method):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                whole = isinstance(target, ast.Name)
                for part in [target] if whole else nodes_in(target):
                    found.setdefault(last_name(part), []).append(node.value if whole else None)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.NamedExpr)):
            found.setdefault(last_name(node.target), []).append(None)
    return {name: once for name, (once, *more) in found.items() if once is not None and not more}


def _given_back(method: ast.FunctionDef, made: Made) -> Iterator[tuple[ast.Call, str]]:
    """The calls that build what is returned, each with what it is to be advanced by."""
    for node in nodes_in(method):
        value = _resolved(node.value, made) if isinstance(node, ast.Return) else None
        held: ast.expr | None = None
        if isinstance(value, ast.Tuple) and len(value.elts) == 2:
            held = _resolved(value.elts[1], made)
        elif isinstance(value, ast.Dict):
            held = _entry(value, "lr_scheduler")
        for one in held.elts if isinstance(held, ast.List) else [held]:
            given = _resolved(one, made)
            interval: str | None = "epoch"
            if isinstance(given, ast.Dict):
                interval = _interval(given)
                given = _resolved(_entry(given, "scheduler"), made)
            if isinstance(given, ast.Call) and interval is not None:
                yield given, interval


def _interval(config: ast.Dict) -> str | None:
    """None where it is not written out, or is not what each tick comes after."""
    every, asked = _entry(config, "frequency"), _entry(config, "interval")
    if None in config.keys or (every is not None and getattr(every, "value", None) != 1):
        return None
    if asked is None:
        return "epoch"
    told = getattr(asked, "value", None)
    return told if told in ("epoch", "step") else None


def _entry(config: ast.Dict, name: str) -> ast.expr | None:
    for key, value in zip(config.keys, config.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == name:
            return value
    return None


def _resolved(value: ast.expr | None, made: Made) -> ast.expr | None:
    return made.get(value.id, value) if isinstance(value, ast.Name) else value


def _sized_in(call: ast.Call, made: Made) -> str | None:
    """`step` or `epoch`, by what its length is made of."""
    name = last_name(call.func)
    if name not in words.TORCH_SCHEDULES and not words.SCHEDULE_BUILDERS.match(name):
        return None
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if None in given or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    if {"epochs", "steps_per_epoch"} <= given.keys():
        return "step"
    length = next((given[word] for word in words.SCHEDULE_LENGTHS if word in given), None)
    at = _LENGTH_AT.get(name, _LENGTH_OF_BUILDERS_AT if name not in words.TORCH_SCHEDULES else len(call.args))
    if length is None and at < len(call.args):
        length = call.args[at]
    return _unit(length, made) if length is not None else None


def _unit(length: ast.expr, made: Made) -> str | None:
    spoken = _names(length, made)
    counts_batches = "len" in spoken and any(map(_COUNTS_BATCHES.search, spoken))
    if counts_batches or any(map(_COUNTS_UPDATES.search, spoken)):
        return "step"
    if any(map(_COUNTS_EPOCHS.search, spoken)) and not any(map(_OF_SHORTER_TIMES.search, spoken)):
        return "epoch"
    return None


def _names(value: ast.expr, made: Made) -> set[str]:
    """Of what it is made of, and of what that is made of."""
    found = set(names_in(value))
    grown: set[str] = set()
    while grown != found:
        grown = set(found)
        for name in grown & made.keys():
            found.update(names_in(made[name]))
    return found

"""Numbers a program is set to: literals, constants, defaults of its command line and of functions."""

from __future__ import annotations

import ast

from gradclinic.static.held import parts
from gradclinic.static.values import Const, Map, Num, Unknown, Value
from gradclinic.static.walk import Arguments, Walk

_POSITIONS = {
    "Adam": {"weight_decay": 4},
    "AdamW": {"weight_decay": 4},
    "SGD": {"momentum": 2, "weight_decay": 4},
    "RMSprop": {"weight_decay": 4, "momentum": 5},
}
_HAVE_MOMENTS = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta"})


def optimizer_settings(walk: Walk, name: str, args: Arguments) -> dict[str, object]:
    """What decides how an optimizer moves a parameter beside its gradient."""
    decoupled = args.keywords.get("decoupled_weight_decay")
    settings: dict[str, object] = {}
    if decoupled is None or (isinstance(decoupled, Const) and decoupled.value is False):
        settings["weight_decay"] = _decay(walk, name, args)
    momentum = _number(walk, _given(name, "momentum", args))
    settings["inertia"] = name in _HAVE_MOMENTS or bool(momentum) or bool(settings.get("weight_decay"))
    return settings


def _decay(walk: Walk, name: str, args: Arguments) -> float | None:
    """The largest weight decay of any group; None when one is not known."""
    overall = _given(name, "weight_decay", args)
    found = [_number(walk, overall)] if overall is not None else []
    for part in parts(args.all()):
        if isinstance(part, Map) and "weight_decay" in part.items:
            found.append(_number(walk, part.items["weight_decay"]))
    known = [value for value in found if value is not None]
    return max(known) if found and len(known) == len(found) else None


def _given(name: str, setting: str, args: Arguments) -> Value | None:
    position = _POSITIONS.get(name, {}).get(setting)
    if position is None:
        return args.keywords.get(setting)
    return args.get(position, setting)


def _number(walk: Walk, value: Value | None) -> float | None:
    if isinstance(value, Num):
        return value.value
    if isinstance(value, Const):
        return float(value.value) if isinstance(value.value, (int, float)) else None
    if isinstance(value, Unknown):
        default = _default(walk, value.path)
        return walk.survey.defaults.get(value.path.rpartition(".")[2]) if default is None else default
    return None


def _default(walk: Walk, name: str) -> float | None:
    """Of a parameter of the function that is walked, where nobody in sight gives anything else."""
    function = walk.active[-1] if walk.active else None
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    taken = function.args
    plain = [*taken.posonlyargs, *taken.args]
    pairs = [
        *zip(reversed(plain), reversed(taken.defaults), strict=False),
        *zip(taken.kwonlyargs, taken.kw_defaults, strict=True),
    ]
    given = next((default for parameter, default in pairs if parameter.arg == name), None)
    number = given.value if isinstance(given, ast.Constant) else None
    return float(number) if type(number) in (int, float) else None  # type: ignore[arg-type]

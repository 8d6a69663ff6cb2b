"""Numbers a program is set to: literals, constants of the file, defaults of its command line."""

from __future__ import annotations

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
        return walk.survey.defaults.get(value.path.rpartition(".")[2])
    return None

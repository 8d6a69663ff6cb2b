"""Calls out of sight that keep an average of weights: they read those that are trained, and no gradient."""

from __future__ import annotations

from gradclinic.static import words
from gradclinic.static.conditions import name_of
from gradclinic.static.values import Accelerator, ActorRef, Const, Func, Model, Num, Params, Unknown, Value

_FOLLOWING = words.names("update update_parameters update_after_step step apply_shadow restore store copy_to")
_TO_TARGETS = words.names("soft_update polyak_update soft_update_params soft_update_target")
"""Named for nothing else, even where the target is not known to be a model."""


def averages(func: Value, reached: list[Value]) -> bool:
    """`ema.update(model)`, `soft_update(target, model)`: given models or weights, and nothing that acts."""
    if any(isinstance(part, (ActorRef, Accelerator, Func)) for part in reached):
        return False
    given = sum(isinstance(part, (Model, Params)) for part in reached)
    owner, _, method = name_of(func).rpartition(".")
    kept_in = owner.rpartition(".")[2]
    if method in _FOLLOWING and words.AVERAGE.search(kept_in):
        return given > 0 and not words.OPTIMIZER_NAME.search(kept_in)
    if method in _TO_TARGETS:
        return given > 0
    return given > 1 and words.AVERAGES.search(method) is not None and not any(map(_may_be_data, reached))


def _may_be_data(value: Value) -> bool:
    """`update_teacher(student, teacher, loader)` may train; a rate is a number or comes of the settings."""
    if isinstance(value, Unknown):
        return "." in value.path and not words.SETTINGS.search(value.path)
    return not isinstance(value, (Model, Params, Const, Num))


def averages_itself(method: str, given: list[Value]) -> bool:
    """`model.update_teacher(0.99)`: without data there is nothing to train on."""
    return words.AVERAGES.search(method) is not None and all(isinstance(one, (Const, Num)) for one in given)

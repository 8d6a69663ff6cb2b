"""What an object built out of sight must be, judged by its name and by what the file does with it."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from gradclinic.facts import ActorKind
from gradclinic.static import words
from gradclinic.static.survey import Survey
from gradclinic.static.values import (
    NOTHING,
    Accelerator,
    ActorRef,
    Criterion,
    Keys,
    Model,
    Num,
    Stream,
    Unknown,
    Value,
)
from gradclinic.static.walk import Walk

_MODEL_METHODS = frozenset({"parameters", "named_parameters", "train", "eval", "zero_grad", "forward"})
_SCALER_METHODS = frozenset({"scale", "unscale_", "get_scale"})
_SCHEDULE_METHODS = frozenset({"get_last_lr", "get_lr"})


ACTOR_ROLES = {
    "optimizer": ActorKind.OPTIMIZER,
    "scaler": ActorKind.SCALER,
    "schedule": ActorKind.SCHEDULE,
}

_FRAMEWORKS = {"accelerator": "accelerate", "fabric": "fabric"}


def role_of(survey: Survey, name: str) -> str:
    known = survey.roles.get(name)
    if known is None:
        known = survey.roles[name] = _role_of(survey, name)
    return known


_NO_OPTIMIZERS = ("opt", "opts", "param_optimizer")
"""Options, and what many a script calls the parameters that it gives to its optimizer."""


def _role_of(survey: Survey, name: str) -> str:
    """optimizer, scaler, schedule, model, accelerator, criterion, loader or nothing."""
    methods: AbstractSet[str] = survey.methods_of.get(name, frozenset())
    if name == "accelerator" or "sync_gradients" in methods:
        return "accelerator"
    if name == "fabric" and "backward" in methods:
        return "fabric"
    if "unscale_" in methods or (_SCALER_METHODS & methods and ("update" in methods or "step" in methods)):
        return "scaler"
    if words.SCALER_NAME.search(name) and ("step" in methods or not methods):
        return "scaler"
    if words.SCHEDULE_NAME.search(name) and {"step", "zero_grad"} <= methods:
        return "optimizer"
    kept = not methods and name not in survey.applied  # `get_schedule(...)` makes one
    if words.SCHEDULE_NAME.search(name) and ("step" in methods or kept):
        return "schedule"
    if "step" in methods and not words.NOT_AN_OPTIMIZER.search(name):
        if "zero_grad" in methods or words.OPTIMIZER_NAME.search(name):
            return "optimizer"
        if _SCHEDULE_METHODS & methods:
            return "schedule"
    if words.OPTIMIZER_NAME.search(name) and (
        "zero_grad" in methods or (not methods and name not in _NO_OPTIMIZERS and name not in survey.applied)
    ):
        return "optimizer"
    if words.CRITERION_NAME.search(name) and not methods:
        return "criterion"
    if words.NOT_A_MODEL.search(name):
        return ""
    if words.MODEL_NAME.search(name) or len(_MODEL_METHODS & methods) >= 2:
        return "model"
    return ""


def named(walk: Walk, label: str, path: str, given: Keys | None) -> Value | None:
    """What an unseen call must have made, by the name of its result; None when the name says nothing."""
    name = label.rsplit(".", 1)[-1]
    role = role_of(walk.survey, name) if label else ""
    if role in ACTOR_ROLES and not _several(walk, name):
        made = actor(walk, ACTOR_ROLES[role], label)
        if role == "optimizer" and given:
            walk.recorder.extend(made.id, given)
        return made
    if role == "model":
        return Model(frozenset({path}), label)
    if role in _FRAMEWORKS:
        return Accelerator(_FRAMEWORKS[role])
    return Criterion(mean=None) if role == "criterion" else None


def _several(walk: Walk, name: str) -> bool:
    """`optimizers`, unless it is stepped as one."""
    return name.endswith("s") and "step" not in walk.survey.methods_of.get(name, ())


def infer(walk: Walk, name: str, path: str) -> Value:
    """A value for something called `name`, reached by `path`, that was never assigned in sight."""
    if words.SETTINGS.search(path) or words.SETTING_NAME.search(name):
        return _setting(walk, name, path)
    role = role_of(walk.survey, name)
    if role in ACTOR_ROLES and not _several(walk, name):
        return actor(walk, ACTOR_ROLES[role], path)
    if role == "model":
        return Model(frozenset({path}), path)
    if role in _FRAMEWORKS:
        return Accelerator(_FRAMEWORKS[role])
    if role == "criterion":
        return Criterion()  # which averages, unless somebody says otherwise
    setting = _setting(walk, name, path)
    if isinstance(setting, Num):
        return setting
    if words.LOADER_NAME.search(name) and not words.LOSS_NAME.search(name):
        return Stream(path)
    return Unknown(path)


def taken_for(walk: Walk, name: str, made: Unknown) -> Value:
    """What an unseen call made, as the function takes it that is given it for its `name`: a model, if that is
    what it is used as, and the same one wherever it is given."""
    methods: AbstractSet[str] = walk.survey.methods_of.get(name, NOTHING)
    if _MODEL_METHODS.isdisjoint(methods) or role_of(walk.survey, name) != "model":
        return made
    if id(made) not in walk.taken:
        label, named_so, _ = made.path.partition("=")
        key = f"{made.path}#{len(walk.taken)}"
        walk.taken[id(made)] = (made, Model(frozenset({key}), label if named_so else name))
    return walk.taken[id(made)][1]


def _setting(walk: Walk, name: str, path: str) -> Value:
    """A plain value from a configuration: `args.optimizer` is a name, not an optimizer."""
    if words.ACCUMULATION_NAME.search(name):
        return walk.invented(walk.window, "accumulation")
    if words.UPDATES_NAME.search(name):
        return Num(None, units=frozenset({"update"}))
    if words.EPOCH_NAME.search(name):
        return Num(None, units=frozenset({"epoch"}))
    return Unknown(path)


def actor(walk: Walk, kind: ActorKind, path: str) -> ActorRef:
    id = walk.recorder.now(f"{kind}:{path}")
    if id not in walk.recorder.actors:
        attrs = {"torch": None} if kind is ActorKind.SCHEDULE else {}
        id = walk.recorder.actor(kind, path, attrs=attrs)
    return ActorRef(id, kind, built=False, prepared=kind is not ActorKind.SCHEDULE)

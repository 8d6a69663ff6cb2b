"""Functions that are handed to an optimizer or a model, to be called whenever it steps or goes forward."""

from __future__ import annotations

import ast

from gradclinic.facts import EventKind
from gradclinic.static.values import (
    NOTHING,
    ActorRef,
    Func,
    Instance,
    Keys,
    Map,
    Model,
    Partial,
    Seq,
    Value,
    overlap,
)  # fmt: skip
from gradclinic.static.walk import Arguments, Hook, Walk

BEFORE_STEP, AFTER_STEP, BEFORE_FORWARD = "before a step", "after a step", "before a forward"
_REGISTERS = {
    "register_step_pre_hook": BEFORE_STEP,
    "register_step_post_hook": AFTER_STEP,
    "register_optimizer_step_pre_hook": BEFORE_STEP,
    "register_optimizer_step_post_hook": AFTER_STEP,
    "register_forward_pre_hook": BEFORE_FORWARD,
}


def register(walk: Walk, attr: str, base: Value | None, args: Arguments) -> bool:
    """Keep what is to be called; False for calls that register nothing of the kind."""
    when = _REGISTERS.get(attr)
    function = args.get(0, "hook")
    if when is not None and function is not None:
        of = frozenset({base.id}) if isinstance(base, ActorRef) else NOTHING
        walk.hooks.append(Hook(when, base.keys if isinstance(base, Model) else of, function))
    return when is not None


def run_hooks(walk: Walk, when: str, of: Keys, node: ast.AST, *given: Value) -> None:
    for hook in walk.hooks:
        concerned = hook.of <= of if when is not BEFORE_FORWARD else overlap(hook.of, of)
        if hook.when is when and concerned:
            _call(walk, hook, of, Arguments([*given, Seq([]), Map({})]), node)


def _call(walk: Walk, hook: Hook, of: Keys, args: Arguments, node: ast.AST) -> None:
    function, keywords = hook.function, dict[str, Value]()
    while isinstance(function, Partial):
        args = Arguments([*function.args, *args.positional])
        keywords = {**function.keywords, **keywords}
        function = function.func
    if isinstance(function, Instance):
        method = function.cls.find("__call__")
        function = method.of(function) if isinstance(method, Func) else function
    if isinstance(function, Func):
        walk.call(walk, function, Arguments(args.positional, keywords), node)
        return
    # Out of sight it may clear, and advance what it was made with.
    optimizers = of if hook.when is not BEFORE_FORWARD else NOTHING
    walk.emit(EventKind.OPAQUE, node, optimizers=optimizers, models=None)

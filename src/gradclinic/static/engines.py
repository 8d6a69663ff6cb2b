"""Engines of Ignite, run as they run: the update for every batch, and the handlers at their events."""

from __future__ import annotations

import ast

from gradclinic.facts import EventKind
from gradclinic.static.abilities import Can
from gradclinic.static.held import parts
from gradclinic.static.ignite import engine_at
from gradclinic.static.opaque import open_tape
from gradclinic.static.syntax import last_name
from gradclinic.static.values import ActorRef, Engine, Func, Lib, Unknown, Value
from gradclinic.static.walk import Arguments, Walk

_EVENTS = frozenset(
    {
        "STARTED",
        "EPOCH_STARTED",
        "ITERATION_STARTED",
        "ITERATION_COMPLETED",
        "EPOCH_COMPLETED",
        "COMPLETED",
    }
)
_EPOCHS = 2


def call_engine(walk: Walk, engine: Engine, attr: str, args: Arguments, node: ast.Call) -> Value:
    if attr == "add_event_handler" and len(args.positional) > 1:
        handler, *given = args.positional[1:]
        attach(walk, engine, node.args[0], handler)
        engine.unsure |= not isinstance(handler, Func) and _may_act(handler, given)
        for part in parts([handler, *given]):
            if isinstance(part, ActorRef):
                walk.recorder.escapes(part.id)
    elif attr == "run":
        _run(walk, engine, node)
    return Unknown(f"engine.{attr}()")


def _may_act(handler: Value, given: list[Value]) -> bool:
    """Not what merely looks on, as most of Ignite do; a checkpoint is given all there is in a dictionary."""
    return not isinstance(handler, (Unknown, Lib)) or any(
        isinstance(part, ActorRef) for part in (*parts([handler]), *given)
    )


def attach(walk: Walk, engine: Engine, event: ast.expr, handler: Value) -> None:
    """A handler by itself trains nothing, if it is not one of the file: Ignite has many that look on."""
    if not isinstance(handler, Func) or not walk.can(handler.node) & Can.ACT:
        return
    name = last_name(event) if isinstance(event, ast.Attribute) else ""
    engine.unsure |= name not in _EVENTS  # `Events.ITERATION_COMPLETED(every=10)`
    engine.handlers.append((name, handler))


def _run(walk: Walk, engine: Engine, node: ast.Call) -> None:
    if not walk.can(engine.update.node) & Can.BACKWARD or walk.summarising:
        return
    if engine.unsure:
        open_tape(walk, node)
        return
    attrs = {"loop": f"{node.lineno}:{node.col_offset}", "known": False, "over": ""}
    _fire(walk, engine, "STARTED", node, 0)
    for epoch in range(_EPOCHS):
        begun = epoch * walk.data_length
        _fire(walk, engine, "EPOCH_STARTED", node, begun)
        walk.emit(EventKind.EPOCH_BEGIN, node, attrs=attrs)
        walk.batches += 1
        for index in range(begun, begun + walk.data_length):
            walk.emit(EventKind.BATCH, node)
            _fire(walk, engine, "ITERATION_STARTED", node, index)
            walk.call(walk, engine.update, Arguments([engine_at(index), Unknown("batch")]), node)
            _fire(walk, engine, "ITERATION_COMPLETED", node, index)
        walk.batches -= 1
        walk.emit(EventKind.EPOCH_END, node, attrs=attrs)
        _fire(walk, engine, "EPOCH_COMPLETED", node, begun + walk.data_length)
    _fire(walk, engine, "COMPLETED", node, _EPOCHS * walk.data_length)


def _fire(walk: Walk, engine: Engine, event: str, node: ast.Call, index: int) -> None:
    for name, handler in engine.handlers:
        if name == event:
            walk.call(walk, handler, Arguments([engine_at(index)], partial=True), node)

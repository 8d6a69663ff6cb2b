"""Learning-rate schedules: construction and ticks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from gradclinic.facts import ActorKind, EventKind
from gradclinic.runtime.lengths import may_stop_early, written_in_epochs
from gradclinic.runtime.places import Places
from gradclinic.runtime.scene import Scene

_LENGTHS = ("total_steps", "T_max", "total_iters")
_BUILD = "schedule build"


def install(scene: Scene) -> None:
    recorder, actors = scene.recorder, scene.actors
    watched: set[type] = set()

    def built(_: object, schedule: LRScheduler, *args: Any, **kwargs: Any) -> None:
        watch(type(schedule))
        optimizer = getattr(schedule, "optimizer", None)
        driven = None if optimizer is None else scene.optimizer(optimizer)
        scene.introduce(
            schedule,
            ActorKind.SCHEDULE,
            of=[driven] if driven else [],
            attrs={
                "torch": True,
                "kind": type(schedule).__name__,
                "planned": planned_ticks(schedule),
                **_told_by_source(recorder.places),
            },
        )

    def ticked(_: object, schedule: LRScheduler, *args: Any, **kwargs: Any) -> None:
        if recorder.within(_BUILD):
            return
        actor = actors.id_of(schedule)
        if actor is None:
            recorder.emit(EventKind.SCHEDULE)
            return
        parts = (part for one in _parts(schedule) if (part := actors.id_of(one)) is not None)
        actors.relate(actor, parts)
        driven = frozenset(o for o in actors.known[actor].of if actors.known[o].kind is ActorKind.OPTIMIZER)
        recorder.emit(EventKind.SCHEDULE, actor, driven, explicit=_epoch_given(schedule, args, kwargs))

    def watch(kind: type) -> None:
        """Wrap what a class defines itself; what it inherits is wrapped where it is defined."""
        one: type
        for one in kind.__mro__:
            if one in watched or not issubclass(one, LRScheduler):
                continue
            watched.add(one)
            if "__init__" in vars(one):
                scene.wrap(one, "__init__", scope=_BUILD, after=built)
            if "step" in vars(one):
                scene.wrap(one, "step", scope="schedule", after=ticked)

    for kind in _with_subclasses(LRScheduler):
        watch(kind)


def _told_by_source(places: Places) -> dict[str, Any]:
    frame = next(places.frames(), None)
    stops = frame is not None and may_stop_early(frame.f_code.co_filename)
    unit = {"planned_unit": "epoch"} if written_in_epochs(places.frames()) else {}
    return {"stops_early": stops, **unit}


def _with_subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _with_subclasses(one)


def _parts(schedule: LRScheduler) -> Iterator[LRScheduler]:
    """Schedules that this one holds and advances itself."""
    for value in vars(schedule).values():
        held = value if isinstance(value, list | tuple) else [value]
        yield from (one for one in held if isinstance(one, LRScheduler))


def _epoch_given(schedule: LRScheduler, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if isinstance(schedule, ReduceLROnPlateau):
        args = args[1:]
    return bool(args) or kwargs.get("epoch") is not None


def planned_ticks(schedule: LRScheduler) -> int | None:
    """How many ticks the schedule was made for, if it was made for a number of them."""
    parts = getattr(schedule, "_schedulers", None)
    milestones = getattr(schedule, "_milestones", None)
    if parts and milestones:
        rest = planned_ticks(parts[-1])
        return None if rest is None else milestones[-1] + rest
    for attribute in _LENGTHS:
        length = getattr(schedule, attribute, None)
        if isinstance(length, int) and attribute != "total_iters":
            return length
        if isinstance(length, int) and type(schedule).__name__ in ("LinearLR", "PolynomialLR"):
            return length
    return next(filter(None, map(_training_steps, getattr(schedule, "lr_lambdas", ()))), None)


def _training_steps(function: Any) -> int | None:
    """The `num_training_steps` a warm-up function was closed over or partially applied with."""
    bound = dict(getattr(function, "keywords", None) or {})
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is not None and cells:
        bound.update(zip(code.co_freevars, (cell.cell_contents for cell in cells), strict=True))
    length = bound.get("num_training_steps")
    return length if isinstance(length, int) else None

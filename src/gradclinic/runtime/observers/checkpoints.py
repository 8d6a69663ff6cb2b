"""Checkpoints: what is in those that are written, what fits of those that are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

import torch
from torch import nn

from gradclinic.facts import ActorKind, Location
from gradclinic.facts.checkpoints import Load, Saves
from gradclinic.runtime.scene import Scene

_PROGRESS = frozenset({"epoch", "step", "global_step", "iteration", "iter", "it", "start_epoch"})


def install(scene: Scene) -> None:
    recorder = scene.recorder
    loads: list[object] = []
    saved: set[str] = set()
    to_go_on_from: list[tuple[Location, int]] = []
    read_at: list[int] = []

    def before_load(module: nn.Module, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        # Not module.state_dict(): it runs hooks, and those of sharded models talk to other ranks.
        own: dict[str, torch.Tensor] = dict(module.named_parameters(remove_duplicate=False))
        buffers = {name for name, _ in module.named_buffers(remove_duplicate=False)}
        aliases = sum(1 for key, value in own.items() if _same_memory(value, state_dict.get(key)))
        missing = tuple(key for key in own if key not in state_dict)
        unexpected = tuple(
            key for key in state_dict if key not in own and key not in buffers and "_extra_state" not in key
        )
        if aliases or missing or unexpected:
            actor = scene.actors.id_of(module)
            name = scene.actors.known[actor].name if actor else type(module).__name__
            load = Load(
                name,
                recorder.places.here(),
                len(own),
                missing,
                unexpected,
                _prefix(missing, unexpected),
                aliases,
                recorder.steps,
            )
            loads.append(load)

    def after_save(_: object, thing: object, *args: Any, **kwargs: Any) -> None:
        holds = set(_parts(thing))
        saved.update(holds)
        target = args[0] if args else kwargs.get("f")
        # The best so far, kept to be used: the epoch in it says which one it is.
        best = isinstance(target, str | PurePath) and "best" in PurePath(target).name.lower()
        if {"model", "progress"} <= holds and not best:
            to_go_on_from.append((recorder.places.here(), recorder.steps))

    def after_read(*args: Any, **kwargs: Any) -> None:
        read_at.append(recorder.steps)

    def tell() -> Iterator[object]:
        yield from loads
        # What is saved once, when all is done, is a result and not a place to go on from; nor is what
        # is read back only then.
        for_use = read_at and min(read_at) == recorder.steps
        if to_go_on_from and recorder.steps > to_go_on_from[0][1] and not for_use:
            exists = {_PARTS[a.kind] for a in scene.actors.known.values() if a.kind in _PARTS}
            yield Saves(to_go_on_from[0][0], frozenset(saved), frozenset(exists))

    scene.wrap(nn.Module, "load_state_dict", scope="checkpoint load", before=before_load)
    scene.wrap(torch, "save", scope="checkpoint save", after=after_save)
    scene.wrap(torch, "load", scope="checkpoint read", after=after_read)
    scene.facts.append(tell)


_PARTS = {
    ActorKind.OPTIMIZER: "optimizer",
    ActorKind.SCHEDULE: "schedule",
    ActorKind.SCALER: "scaler",
    ActorKind.MODEL: "model",
}


def _parts(thing: object, *, inside: bool = False) -> Iterator[str]:
    """What a saved object holds, by the shape of the state_dicts in it."""
    if not isinstance(thing, Mapping):
        return
    keys = {key for key in thing if isinstance(key, str)}
    if {"state", "param_groups"} <= keys:
        yield "optimizer"
    elif "last_epoch" in keys or "num_bad_epochs" in keys or "_schedulers" in keys:
        yield "schedule"
    elif {"scale", "growth_factor"} <= keys:
        yield "scaler"
    elif keys and all(isinstance(value, torch.Tensor) for value in thing.values()):
        yield "model"
    else:
        if keys & _PROGRESS and not inside:
            yield "progress"
        for value in thing.values():
            for one in value if isinstance(value, list | tuple) else [value]:
                yield from _parts(one, inside=True)


def _prefix(missing: tuple[str, ...], unexpected: tuple[str, ...]) -> str:
    """`module.` when the keys given would fit without it; `+module.` when they would fit with it."""
    wanted = set(missing)
    for given in unexpected:
        for key in missing:
            if given.endswith(f".{key}"):
                prefix = given[: -len(key)]
                if sum(1 for one in unexpected if one.removeprefix(prefix) in wanted) * 2 > len(unexpected):
                    return prefix
            if key.endswith(f".{given}"):
                prefix = key[: -len(given)]
                if sum(1 for one in unexpected if prefix + one in wanted) * 2 > len(unexpected):
                    return f"+{prefix}"
    return ""


def _same_memory(own: torch.Tensor, given: Any) -> bool:
    return (
        isinstance(given, torch.Tensor)
        and own.numel() > 0
        and own.device == given.device
        and own.data_ptr() == given.data_ptr() != 0
    )

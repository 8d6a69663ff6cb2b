"""Checkpoints, and tools that read torch's own source."""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch

from gradclinic.facts import EventKind
from gradclinic.runtime.patching import unseen
from gradclinic.runtime.scene import Scene


def install(scene: Scene) -> None:
    def saved(_: object, thing: object, *args: Any, **kwargs: Any) -> None:
        keys = tuple(key for key in thing if isinstance(key, str)) if isinstance(thing, dict) else ()
        scene.recorder.emit(EventKind.SAVE, keys=keys)

    scene.wrap(torch, "save", scope="save", after=saved)
    scene.patches.replace(torch.jit, "script", _on_bare_torch(scene, torch.jit.script))


def _on_bare_torch(scene: Scene, script: Any) -> Any:
    """TorchScript compiles the functions it finds from their source, and ours have none it can read."""

    @wraps(script)
    def on_bare_torch(
        obj: Any, optimize: None = None, _frames_up: int = 0, *args: Any, **kwargs: Any
    ) -> Any:
        with scene.patches.lifted():
            # It looks up the names of a class in the frame of its caller, which is one further away.
            return script(obj, optimize, _frames_up + 1, *args, **kwargs)

    return unseen(on_bare_torch)

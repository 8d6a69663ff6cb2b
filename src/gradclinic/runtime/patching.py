"""Replacing attributes of torch for the time of a recording, and putting them back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

import torch

if TYPE_CHECKING:
    from gradclinic.runtime.recorder import Recorder

_ABSENT = object()
UNSEEN = "<gradclinic, as importlib._bootstrap>"
"""A file name by which `warnings` takes a frame for machinery and blames the caller behind it."""


class Patches:
    """Attributes that were replaced, with what they were before."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any, Any]] = []
        self._undo: list[Callable[[], object]] = []

    def replace(self, owner: Any, name: str, new: Any) -> None:
        self._originals.append((owner, name, vars(owner).get(name, _ABSENT), new))
        setattr(owner, name, new)

    def on_undo(self, undo: Callable[[], object]) -> None:
        self._undo.append(undo)

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._put_back()
        self._originals.clear()

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Torch as it was, for code that reads the source of what it finds, such as `torch.jit.script`."""
        self._put_back()
        try:
            yield
        finally:
            for owner, name, _, new in self._originals:
                setattr(owner, name, new)

    def _put_back(self) -> None:
        for owner, name, original, _ in reversed(self._originals):
            if original is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, original)


def observed(
    original: Callable[..., Any],
    recorder: Recorder,
    *,
    scope: str,
    before: Callable[..., object] | None = None,
    after: Callable[..., object] | None = None,
) -> Callable[..., Any]:
    """`original`, told about to `before(*args)` and `after(result, *args)`.

    Only the outermost call in a `scope` is told: what torch calls from inside another call of that
    scope is not the user's doing. Code that is being compiled sees nothing but `original`.
    """

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or not recorder.enter(scope):
            return original(*args, **kwargs)
        try:
            if before is not None:
                recorder.safely(before, *args, **kwargs)
            result = original(*args, **kwargs)
        finally:
            recorder.leave(scope)
        if after is not None:
            recorder.safely(after, result, *args, **kwargs)
        return result

    return unseen(call)


def unseen(wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Warnings raised below `wrapper` name the user's line, as they would without it."""
    function = cast(FunctionType, wrapper)
    function.__code__ = function.__code__.replace(co_filename=UNSEEN)
    return function

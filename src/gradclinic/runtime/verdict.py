"""What becomes of an output made with gradients off: is it held against what it should have been?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from gradclinic.runtime.closeup.mode import Closeup
from gradclinic.runtime.closeup.trail import name_of, tensors_in
from gradclinic.runtime.recorder import Recorder

_MOST_LOOKS = 40
_MOST_FUNCTIONS = 60
_CHOICES = frozenset({"argmax", "max", "topk", "round", "gt", "ge", "__gt__", "__ge__", "sort", "argsort"})
_COMPARED = frozenset({"eq", "__eq__", "ne", "__ne__", "isin"})


class _Is(IntEnum):
    OUTPUT = 0
    CHOICE = 1
    """A class was picked from it."""
    ERROR = 2
    """Its difference from something that the model did not make."""


class Verdict:
    """Sees the functions that follow an evaluation, a few at a time, and for a part of the run only."""

    def __init__(self, recorder: Recorder, judged: Callable[[], None]) -> None:
        self._recorder = recorder
        self._judged = judged
        self._looks = 0
        self._functions = 0
        self._mode: Closeup | None = None
        self._known = WeakTensorKeyDictionary()

    def follow(self, output: Iterable[torch.Tensor]) -> None:
        self.stop()
        if self._looks >= _MOST_LOOKS or torch.is_grad_enabled():
            return
        self._looks += 1
        self._functions = 0
        self._known = WeakTensorKeyDictionary()
        for tensor in output:
            self._known[tensor] = _Is.OUTPUT
        self._mode = Closeup(self._recorder, self._note)
        self._mode.begin()

    @property
    def following(self) -> bool:
        return self._mode is not None

    def stop(self) -> None:
        if self._mode is not None:
            self._mode.end()
            self._mode = None

    def _look_away(self) -> None:
        """While a function is under way the mode is off the stack, and cannot be taken away."""
        if self._mode is not None:
            self._mode.active = False

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._functions += 1
        if self._functions > _MOST_FUNCTIONS:
            self._look_away()
            return
        tensors = list(tensors_in((*args, *kwargs.values())))
        states = [self._known.get(tensor) for tensor in tensors]  # type: ignore[no-untyped-call]
        known = [state for state in states if state is not None]
        if not known:
            return
        name, state = name_of(func), max(known)
        others = [tensor for tensor, state in zip(tensors, states, strict=True) if state is None]
        given = any(tensor.shape == tensors[0].shape for tensor in others)
        if (name in _COMPARED and state is _Is.CHOICE and others) or (
            name in ("mean", "sum") and state is _Is.ERROR
        ):
            self._judged()
            self._look_away()
            return
        if name in _CHOICES and state is _Is.OUTPUT:
            state = _Is.CHOICE
        elif name in ("sub", "rsub") and given:
            state = _Is.ERROR
        for made in tensors_in([result]):
            self._known[made] = state

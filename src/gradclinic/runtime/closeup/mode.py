"""The mode that sees every torch function while the run is young.

It is pushed where an optimizer is built and taken away after a few steps. Functions are called as
they are; what they made is noted afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._C import _get_function_stack_at, _len_torch_function_stack
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from gradclinic.runtime.patching import unseen
from gradclinic.runtime.recorder import Recorder

Note = Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None]


class Closeup(TorchFunctionMode):
    def __init__(self, recorder: Recorder, note: Note) -> None:
        super().__init__()
        self._recorder = recorder
        self._note = note
        self._on_stack = False
        self.active = False
        self.over = False

    def begin(self) -> None:
        """Only on an empty stack: a mode of the user's that is open now would be closed over ours."""
        if self.over or self._on_stack or not _nothing_open():
            return
        self.__enter__()  # type: ignore[no-untyped-call]
        self._on_stack = self.active = True

    def reopen(self) -> None:
        """Ours may still lie below a mode of the user's."""
        self.over = False
        self.active = self._on_stack
        self.begin()

    def end(self) -> None:
        """Where a mode of the user's lies on top, ours stays below it and does nothing."""
        self.active = False
        self.over = True
        if self._on_stack and _top() is self:
            self.__exit__(None, None, None)
            self._on_stack = False

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Torch without this mode, for code that chooses another path when one is active."""
        if not (self._on_stack and _top() is self):
            yield
            return
        self.__exit__(None, None, None)
        try:
            yield
        finally:
            self.__enter__()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if torch.compiler.is_compiling() or not self.active:
            return func(*args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        self._recorder.safely(self._note, func, args, kwargs or {}, result)
        return result

    __torch_function__ = unseen(__torch_function__)


def _top() -> Any:
    depth = _len_torch_function_stack()
    return _get_function_stack_at(depth - 1) if depth else None


def _nothing_open() -> bool:
    depth = _len_torch_function_stack()
    default = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return depth == 0 or (depth == 1 and isinstance(default, DeviceContext) and _top() is default)

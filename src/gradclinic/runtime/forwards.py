"""Calls of modules: one wrapper for all observers, because every layer of a model passes through it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import nn

from gradclinic.runtime.patching import Patches, unseen
from gradclinic.runtime.recorder import Recorder


class Forwards:
    """Who wants to know of calls; what a module calls within its own is only told to `of_any`."""

    def __init__(self) -> None:
        self.before: list[Callable[..., object]] = []
        """Called with the module and what is given to it."""
        self.after: list[Callable[[nn.Module, Any], object]] = []
        """Called with the module and its result."""
        self.of_any: list[Callable[[nn.Module], object]] = []
        """Called for every module, however deep inside another; empty again once the run is not young."""

    def watch(self, recorder: Recorder, patches: Patches) -> None:
        original = nn.Module.__call__
        before, after, of_any = self.before, self.after, self.of_any
        inside = False
        # A layer inside a model is most of what comes here. What torch's own `__call__` does is then done in
        # its place and not behind it, which costs a layer nothing more than without us.
        is_torchs = original is getattr(nn.Module, "_wrapped_call_impl", None)

        @wraps(original)
        def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            nonlocal inside
            if inside and not of_any:
                if is_torchs and self._compiled_call_impl is None:
                    return self._call_impl(*args, **kwargs)  # type: ignore[no-untyped-call]
                return original(self, *args, **kwargs)
            if torch.compiler.is_compiling() or not recorder.watching:
                return original(self, *args, **kwargs)
            for of_one in of_any:
                recorder.safely(of_one, self)
            if inside:
                return original(self, *args, **kwargs)
            inside = True
            try:
                for about_to_run in before:
                    recorder.safely(about_to_run, self, *args, **kwargs)
                result = original(self, *args, **kwargs)
            finally:
                inside = False
            for has_run in after:
                recorder.safely(has_run, self, result)
            return result

        patches.replace(nn.Module, "__call__", unseen(__call__))

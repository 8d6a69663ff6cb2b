"""Where in the user's source a module, a function or a call is."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import FrameType

import torch
from torch.nn import Module

from gradclinic.facts import Location

_OURS = str(Path(__file__).resolve().parent.parent)
_TORCH = str(Path(torch.__file__).resolve().parent)


def shown_path(path: str) -> str:
    """Relative to the working directory where that is shorter to read."""
    try:
        return str(Path(path).resolve().relative_to(Path.cwd()))
    except ValueError:
        return path


def caller() -> Location | None:
    """The innermost line that is the user's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((_OURS, _TORCH, "<")) and "importlib" not in path:
            return Location(shown_path(path), frame.f_lineno, function=frame.f_code.co_name)
        frame = frame.f_back
    return None


def function_line(function: object) -> Location | None:
    """The line a function was defined on; None for what has no Python source of the user's."""
    plain = inspect.unwrap(function) if callable(function) else function
    code = getattr(getattr(plain, "__func__", plain), "__code__", None)
    if code is None or code.co_filename.startswith((_OURS, _TORCH, "<")):
        return None
    return Location(shown_path(code.co_filename), code.co_firstlineno, function=code.co_name)


def module_line(model: Module, name: str) -> Location | None:
    """The `forward` of the innermost module of the user's own around the one called `name`."""
    path = name.split(".") if name else []
    for depth in range(len(path), -1, -1):
        inside = ".".join(path[:depth])
        try:
            module = model.get_submodule(inside)
        except AttributeError:
            continue
        found = function_line(type(module).forward)
        if found is not None:
            return found
    return None

"""From `file.py:function` on the command line to the case that function returns."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from gradclinic.case import Case
from gradclinic.errors import UsageError


def load_case(target: str) -> Case:
    """The case that `file.py:function` or `package.module:function` makes."""
    made: Case = load_target(target, (Case,))
    return made


def load_target(target: str, kinds: tuple[type, ...]) -> Any:
    """What the target's function makes, when it is one of `kinds`."""
    made = _call(target, find_target(target))
    if not isinstance(made, kinds):
        wanted = " or a ".join(f"gradclinic.{kind.__name__}" for kind in kinds)
        raise UsageError(f"{target} returned a {type(made).__name__}, expected a {wanted}")
    return made


def find_target(target: str) -> Callable[..., Any]:
    """The function that `file.py:function` names, not called yet."""
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"{target!r} is no target; write file.py:function or package.module:function")
    module = _import_file(Path(place)) if place.endswith(".py") else _import_module(place)
    function = getattr(module, name, None)
    if function is None:
        raise UsageError(f"{place} has no function {name!r}{_offer(module)}")
    if not callable(function):
        raise UsageError(
            f"{name} in {place} is a {type(function).__name__}, expected a function that returns a Case"
        )
    return function  # type: ignore[no-any-return]


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path} does not exist")
    folder = str(path.resolve().parent)
    # The file's neighbours are importable, as they are when Python runs it as a script.
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        _restore(path.stem, before)
        raise UsageError(f"{path} cannot be imported: {_one_line(error)}") from error
    return module


def _import_module(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name} cannot be imported: {_one_line(error)}") from error


def _restore(name: str, module: ModuleType | None) -> None:
    if module is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = module


def _call(target: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{target} raised {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    """`ValueError: bad shape (case.py:12)`: the error and the line it came from."""
    said = " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {said}{where}" if said else f"{type(error).__name__}{where}"


def _offer(module: ModuleType) -> str:
    own = [
        name
        for name, value in vars(module).items()
        if callable(value)
        and not name.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
    ]
    return f"; it has {', '.join(own[:5])}" if own else ""

"""Which adapter fits what the user named or handed over."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from gradclinic.errors import UsageError
from gradclinic.sinks._sink import Sink

_PACKAGES = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow", "trackio": "trackio"}
KNOWN = tuple(_PACKAGES)
_ADAPTERS = {"torch": "tensorboard", "tensorboardX": "tensorboard", **{name: name for name in KNOWN}}
"""The adapter for objects of a package."""


def open_sink(name: str) -> Sink:
    """A log of our own: `tensorboard`, or `tensorboard:WHERE`, a folder, project or experiment."""
    kind, _, where = name.partition(":")
    if kind not in KNOWN:
        raise UsageError(f"there is no log {kind!r}; choose one of {', '.join(KNOWN)}")
    if find_spec(_PACKAGES[kind]) is None:
        raise UsageError(f"{kind} is not installed; pip install 'gradclinic[{kind}]' brings it")
    try:
        return _adapter(kind).opened(where)  # type: ignore[no-any-return]
    except Exception as error:  # whatever a logger raises that cannot reach its disk or server
        said = str(error).strip().partition("\n")[0]
        raise UsageError(f"cannot open a log of {kind}: {type(error).__name__}: {said}") from error


def sinks_of(targets: object) -> tuple[Sink, ...]:
    """What `to=` was given: a writer, a run, a module such as `wandb`, a name, a sink, or several."""
    if targets is None:
        return ()
    if isinstance(targets, list | tuple):
        return tuple(sink for target in targets for sink in sinks_of(target))
    return (_sink_of(targets),)


def _sink_of(target: object) -> Sink:
    if isinstance(target, str):
        return open_sink(target)
    if isinstance(target, Sink):
        return target
    home = target.__name__ if isinstance(target, ModuleType) else type(target).__module__
    kind = _ADAPTERS.get(home.partition(".")[0])
    if kind is None:
        raise UsageError(
            f"cannot log to {type(target).__name__}; give a SummaryWriter, a run of wandb, mlflow or "
            "trackio, or an object with scalars, histogram, alert and close"
        )
    return _adapter(kind).around(target)  # type: ignore[no-any-return]


def _adapter(kind: str) -> Any:
    return import_module(f"gradclinic.sinks.{kind}")



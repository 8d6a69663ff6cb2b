"""While a variant is made and run: see what the user traces and compiles, and change one thing.

The user's function stays as it is. What it calls, `make_fx` and `torch.compile`, is led through
here, so that a fault can be pinned down by asking: does it go away when only this is different?
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import _MakefxTracer
from torch.nn import Module
from torch.utils import _pytree as pytree

from gradclinic.compile.lifted import modules_of
from gradclinic.compile.tracing import SavedTensors, reconnect
from gradclinic.facts import Location
from gradclinic.probes._where import caller

_TORCH = str(Path(torch.__file__).resolve().parent)


@dataclass
class Change:
    """What is done otherwise than the user does it; by default nothing."""

    backend: str | None = None
    """Replaces the user's backend; "none" leaves `torch.compile` out."""
    reconnect: bool = False
    train: Module | None = None
    """Is in train mode, with every module the traced function reaches, while it is traced."""
    entry: bool = False
    """Floating inputs of the trace require grad."""
    edit: Callable[[GraphModule, list[Module]], None] | None = None
    """Applied to each traced graph, with the modules its function reaches."""


@dataclass
class Seen:
    """What the user's function did."""

    graphs: list[GraphModule] = field(default_factory=list)
    modules: list[Module] = field(default_factory=list)
    """What the traced functions reach."""
    traced_at: Location | None = None
    compiled_at: Location | None = None
    backends: list[str] = field(default_factory=list)
    saved: int = 0
    """Saved tensors that the traced graphs hold as constants, as far as the user left them there."""


@contextmanager
def intercepted(change: Change) -> Iterator[Seen]:
    seen = Seen()
    tracing, compiling = _tracing(change, seen), _compiling(change, seen)
    with _replaced(_MakefxTracer, "trace", tracing), _replaced(torch, "compile", compiling):
        yield seen


def _tracing(change: Change, seen: Seen) -> Callable[..., GraphModule]:
    plain = _MakefxTracer.trace

    def trace(self: Any, function: Callable[..., Any], *args: Any) -> GraphModule:
        # torch's own compilers trace through make_fx as well; only the user's traces are of interest.
        if sys._getframe(2).f_code.co_filename.startswith(_TORCH):
            return plain(self, function, *args)
        seen.traced_at = seen.traced_at or caller()
        reached = list(modules_of(function).values())
        seen.modules += reached
        saved = SavedTensors()

        def watched(*given: Any) -> Any:
            given = pytree.tree_map_only(Tensor, _entering, given) if change.entry else given
            with saved:
                return function(*given)

        with _training([change.train, *reached] if change.train is not None else []):
            graph = plain(self, watched, *args)
        seen.graphs.append(graph)
        nodes = saved.nodes()
        seen.saved += len(nodes)
        if change.reconnect:
            reconnect(graph, nodes)
        if change.edit is not None:
            change.edit(graph, reached)
        return graph

    return trace


def _compiling(change: Change, seen: Seen) -> Callable[..., Any]:
    plain = torch.compile

    def compile(model: Any = None, **options: Any) -> Any:
        if model is None:
            return lambda decorated: compile(decorated, **options)
        seen.compiled_at = seen.compiled_at or caller()
        backend = options.get("backend", "inductor")
        named = backend if isinstance(backend, str) else getattr(backend, "__name__", "its own")
        seen.backends.append(named)
        if change.backend == "none":
            return model
        if change.backend is not None:
            options = {key: options[key] for key in ("dynamic", "fullgraph") if key in options}
            options["backend"] = change.backend
        return plain(model, **options)

    return compile


def _entering(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_(True) if tensor.is_floating_point() else tensor


@contextmanager
def _training(modules: list[Module]) -> Iterator[None]:
    modes = [(part, part.training) for module in modules for part in module.modules()]
    try:
        for part, _ in modes:
            part.training = True
        yield
    finally:
        for part, mode in modes:
            part.training = mode


@contextmanager
def _replaced(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    plain = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, plain)

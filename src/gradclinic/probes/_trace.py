"""Every tensor that enters or leaves a module during one forward, in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.nn import Module

from gradclinic.case import Case
from gradclinic.probes._tree import tensors

OUTPUTS = "<outputs>"


@dataclass(frozen=True)
class Event:
    module: str
    """Its name; "" is the model, OUTPUTS what the case's forward made of it."""
    left: bool
    """The tensors left the module; otherwise they entered it."""
    tensors: tuple[Tensor, ...]


@dataclass
class Trace:
    events: list[Event] = field(default_factory=list)

    def shapes(self) -> list[list[tuple[int, ...]]]:
        return [[tuple(tensor.shape) for tensor in event.tensors] for event in self.events]

    def note(self, module: str, left: bool, held: Any) -> None:
        # Copies, because an in-place operation further on would rewrite what was seen here.
        copies = tuple(tensor.detach().clone() for tensor in tensors(held))
        self.events.append(Event(module, left, copies))


def traced(case: Case, batch: Any) -> Trace:
    """One forward of the case, the outputs as the last event."""
    trace = Trace()
    with recording(case.model, trace):
        outputs = case.outputs(batch=batch)
    trace.note(OUTPUTS, True, outputs)
    return trace


@contextmanager
def recording(model: Module, trace: Trace) -> Iterator[None]:
    handles = []
    for name, module in model.named_modules():

        def enter(_module: Module, args: Any, kwargs: Any, name: str = name) -> None:
            trace.note(name, False, (args, kwargs))

        def leave(_module: Module, _args: Any, made: Any, name: str = name) -> None:
            trace.note(name, True, made)

        handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
        handles.append(module.register_forward_hook(leave))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()

"""A model's call as a pure function of its parameters, its buffers and its arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.func import functional_call
from torch.nn import Module

from gradclinic.compile.lifting import filled, tensors
from gradclinic.errors import GradclinicError


class MissingTensor(GradclinicError):
    """A tensor that the compiled graph takes as input is no longer in the model."""


class Lifted:
    """`function(*state, *inputs)` does what the module, method or function does with `state` in its place."""

    def __init__(self, target: Callable[..., Any], name: str = "") -> None:
        self.name = name
        self.module = target if isinstance(target, Module) else _Held(target)
        self.names = [*dict(self.module.named_parameters()), *dict(self.module.named_buffers())]
        self._owners = [self._owner(path) for path in self.names]
        self._parts = list(self.module.modules())

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """As the user would."""
        return self.module(*args, **kwargs)

    def state(self) -> list[Tensor]:
        """The tensors as they are now: weights move, buffers may be replaced."""
        found = []
        for (parameters, buffers, key), path in zip(self._owners, self.names, strict=True):
            tensor = parameters.get(key)
            tensor = buffers.get(key) if tensor is None else tensor
            if tensor is None:
                whose = f"task {self.name!r} has" if self.name else "the model has"
                raise MissingTensor(f"{whose} no tensor {path!r}, which the compiled graph takes as input")
            found.append(tensor)
        return found

    def modes(self) -> tuple[bool, ...]:
        return tuple(part.training for part in self._parts)

    def function(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[..., Any]:
        """Takes the state and the tensors of `args` and `kwargs`, flat; the rest of them is fixed."""
        count = len(self.names)

        def flat(*given: Tensor) -> Any:
            state = dict(zip(self.names, given[:count], strict=True))
            inner_args, inner_kwargs = filled((tuple(args), dict(kwargs)), given[count:])
            return functional_call(self.module, state, inner_args, inner_kwargs)

        return flat

    def inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
        return list(tensors((tuple(args), dict(kwargs))).values())

    def _owner(self, path: str) -> tuple[dict[str, Any], dict[str, Any], str]:
        holder, _, key = path.rpartition(".")
        module = self.module.get_submodule(holder)
        return module._parameters, module._buffers, key


class _Held(Module):
    """A function together with the modules it reaches: their tensors are lifted too."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.held = function
        for name, module in modules_of(function).items():
            self.add_module(name, module)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.held(*args, **kwargs)


def modules_of(function: Any) -> dict[str, Module]:
    """Modules a function has at hand: the object it is a method of, its closure, its bound arguments."""
    if isinstance(function, functools.partial):
        bound = {str(i): value for i, value in enumerate(function.args)} | dict(function.keywords)
        inner = modules_of(function.func)
        return inner | {name: value for name, value in bound.items() if isinstance(value, Module)}
    owner = getattr(function, "__self__", None)
    if isinstance(owner, Module):
        return {type(owner).__name__.lower(): owner}
    plain = inspect.unwrap(function)
    if not inspect.isfunction(plain):
        return {}
    reached = inspect.getclosurevars(plain)
    names = {**reached.globals, **reached.nonlocals}
    return {name: value for name, value in names.items() if isinstance(value, Module)}

"""A model, a batch and the way to the loss, taken from a running script, so that both can be run again.

Between the call of the model and `backward` every torch function is written down. What leads from the
model's outputs to the loss is then a program: it can be run on other outputs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from gradclinic.runtime import graph
from gradclinic.runtime.scene import Scene

_LONGEST = 2_000
"""Calls between a model and its loss; more are no formula of a loss."""


@dataclass(frozen=True)
class Call:
    function: Callable[..., Any]
    given: tuple[tuple[Any, ...], dict[str, Any]]
    made: tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Captured:
    """One training step of the script as it was at its first backward."""

    model: nn.Module
    """A copy, with the weights it had then."""
    batch: tuple[tuple[Any, ...], dict[str, Any], list[torch.Tensor]]
    """The model's arguments, and the tensors that the loss takes beside its outputs."""
    loss: Callable[[Any, list[torch.Tensor]], torch.Tensor]
    optimizer: torch.optim.Optimizer | None
    """A copy over the parameters of `model`, as it was before its first step."""


class Capture:
    """Waits for the first loss that one model leads to; `captured` is None until then."""

    def __init__(self) -> None:
        self.captured: Captured | None = None
        self.why_not = "no model was called and trained"
        self._scene: Scene | None = None
        self._model: nn.Module | None = None
        self._given: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
        self._outputs: Any = None
        self._calls: list[Call] = []
        self._models = 0

    def watch(self, scene: Scene) -> None:
        self._scene = scene
        scene.forwards.before.append(self._about_to_run)
        scene.forwards.after.append(self._ran)
        scene.functions.append(self._called)
        scene.wrap(torch.autograd, "backward", scope="capture", before=self._about_to_send_back)

    def _about_to_run(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        if self.captured is None and torch.is_grad_enabled() and _trains(module):
            self._models += 1
            self._model, self._given = module, _own((args, kwargs))
            self._outputs = None
            self._calls.clear()

    def _ran(self, module: nn.Module, result: Any) -> None:
        if module is self._model and self.captured is None:
            self._outputs = result
            self._calls.clear()

    def _called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if self._outputs is not None and len(self._calls) < _LONGEST:
            made = tuple(_tensors(result))
            if made:
                self._calls.append(Call(function, (args, kwargs), made))

    def _about_to_send_back(self, tensors: Any, *args: Any, **kwargs: Any) -> None:
        if self.captured is not None:
            return
        root = tensors if isinstance(tensors, torch.Tensor) else next(iter(tensors), None)
        model, outputs, calls = self._model, self._outputs, list(self._calls)
        several, self._models = self._models > 1, 0
        self._model = self._outputs = None
        self._calls.clear()
        if model is None or outputs is None or root is None:
            return
        if several:
            self.why_not = "the loss passes through several models, or through one several times"
        elif root.numel() != 1:
            self.why_not = "what is sent back is not one number"
        else:
            self._take(model, outputs, self._without_scale(root, calls), calls)

    def _without_scale(self, root: torch.Tensor, calls: list[Call]) -> torch.Tensor:
        assert self._scene is not None
        if root.grad_fn is None or graph.key_of(root.grad_fn) not in self._scene.scaled_losses:
            return root
        maker = _maker_of(root, calls)
        first = maker.given[0][0] if maker is not None and maker.given[0] else root
        return first if isinstance(first, torch.Tensor) else root

    def _take(self, model: nn.Module, outputs: Any, root: torch.Tensor, calls: list[Call]) -> None:
        assert self._scene is not None
        formula = _formula(root, _tensors(outputs), calls)
        if formula is None:
            self.why_not = "the loss is made of more than the outputs of one model and data"
            return
        program, constants = formula
        try:
            twin = copy.deepcopy(model)
        except Exception as error:
            self.why_not = f"the model cannot be copied: {type(error).__name__}: {error}"
            return
        twin.zero_grad()
        self.captured = Captured(twin, (*self._given, constants), program, self._optimizer_of(model, twin))

    def _optimizer_of(self, model: nn.Module, twin: nn.Module) -> torch.optim.Optimizer | None:
        assert self._scene is not None
        twins = {id(own): other for own, other in zip(model.parameters(), twin.parameters(), strict=True)}
        for _, optimizer in self._scene.actors.optimizers():
            held = [p for group in optimizer.param_groups for p in group["params"]]
            if held and all(id(parameter) in twins for parameter in held):
                return copy.deepcopy(optimizer, dict(twins))
        return None


def _trains(module: nn.Module) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters())


def _own(given: Any) -> Any:
    """Tensors of ours, which the script cannot write to."""
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().clone(), given)


def _maker_of(tensor: torch.Tensor, calls: Sequence[Call]) -> Call | None:
    return next((call for call in reversed(calls) if any(made is tensor for made in call.made)), None)


def _formula(
    root: torch.Tensor, leaves: Sequence[torch.Tensor], calls: Sequence[Call]
) -> tuple[Callable[[Any, list[torch.Tensor]], torch.Tensor], list[torch.Tensor]] | None:
    """How `root` follows from the outputs; None where something else that learns is part of it."""
    follows = {id(leaf) for leaf in leaves}
    needed: list[Call] = []
    beside: dict[int, torch.Tensor] = {}
    for call in calls:
        given = _tensors(call.given)
        if any(id(one) in follows for one in given):
            needed.append(call)
            beside |= {id(one): one for one in given if id(one) not in follows}
            follows |= {id(made) for made in call.made}
    if id(root) not in follows or any(one.requires_grad for one in beside.values()):
        return None
    places = {address: place for place, address in enumerate(beside)}

    def loss(outputs: Any, data: list[torch.Tensor]) -> torch.Tensor:
        values = {id(old): new for old, new in zip(leaves, _tensors(outputs), strict=True)}
        values |= {address: data[place] for address, place in places.items()}

        def now(tensor: torch.Tensor) -> torch.Tensor:
            return values.get(id(tensor), tensor)

        for call in needed:
            args, kwargs = pytree.tree_map_only(torch.Tensor, now, call.given)
            made = _tensors(call.function(*args, **kwargs))
            values.update(zip(map(id, call.made), made, strict=True))
        return values[id(root)]

    return loss, [_own(one) for one in beside.values()]


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]

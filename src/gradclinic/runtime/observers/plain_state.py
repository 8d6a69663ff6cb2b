"""Tensors that a model depends on and its state_dict does not hold."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from gradclinic.facts.location import Location
from gradclinic.facts.plain_state import PlainState
from gradclinic.runtime.names import class_of
from gradclinic.runtime.plain_state import Assigned, made_of_data
from gradclinic.runtime.scene import Scene
from gradclinic.runtime.values import readable

_LOOK_AT_STEP = 2
_DEEPEST = 4
_SHORT = 4
"""Digits of a number that a person would write."""


@dataclass
class _Plain:
    module: weakref.ref[nn.Module]
    model: weakref.ref[nn.Module]
    attribute: str
    name: str
    where: Location
    assigned: str
    saved: bool = False
    kept: bool = False


def install(scene: Scene) -> None:
    found: list[_Plain] = []

    def look() -> None:
        for actor, model in scene.actors.models():
            if next(model.parameters(), None) is None:
                continue
            for path, module in model.named_modules(prefix=scene.actors.known[actor].name):
                for attribute, how, where in _plain_tensors(module, scene):
                    if not any(one.module() is module and one.attribute == attribute for one in found):
                        name = f"{path}.{attribute}"
                        found.append(
                            _Plain(weakref.ref(module), weakref.ref(model), attribute, name, where, how.text)
                        )

    def stepped(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if scene.recorder.steps == _LOOK_AT_STEP and not torch.compiler.is_compiling():
            scene.recorder.safely(look)

    def saved(_: object, thing: object, *args: Any, **kwargs: Any) -> None:
        if not found:
            return
        parts = list(_parts(thing, _DEEPEST))
        addresses = {part.data_ptr() for part in parts if isinstance(part, torch.Tensor) and readable(part)}
        for one in found:
            module, model = one.module(), one.model()
            value = getattr(module, one.attribute, None)
            weight = next(model.parameters(), None) if model is not None else None
            pickled = any(part is model or part is module for part in parts)
            one.kept |= pickled or (isinstance(value, torch.Tensor) and value.data_ptr() in addresses)
            one.saved |= weight is not None and weight.data_ptr() in addresses

    def tell() -> list[object]:
        return [PlainState(one.name, one.where, one.assigned, one.saved) for one in found if not one.kept]

    scene.patches.on_undo(register_optimizer_step_post_hook(stepped).remove)
    scene.wrap(torch, "save", scope="plain state save", after=saved)
    scene.facts.append(tell)


def _plain_tensors(module: nn.Module, scene: Scene) -> Iterator[tuple[str, Assigned, Location]]:
    plain = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, torch.Tensor) and value.is_floating_point() and not value.requires_grad
    }
    places = scene.recorder.places
    code = getattr(type(module).forward, "__code__", None)
    if not plain or code is None or not places.is_users(code.co_filename):
        return
    source = class_of(code.co_filename, type(module).__name__)
    assigned = made_of_data(source) if isinstance(source, ast.ClassDef) else {}
    for name, value in plain.items():
        how = assigned.get(name)
        if how is not None and readable(value) and _is_measured(value, how):
            yield name, how, places.named(code.co_filename, how.line, type(module).__qualname__)


def _is_measured(value: torch.Tensor, how: Assigned) -> bool:
    """A constant somebody wrote down, or a grid, is made again by the same code."""
    if sum(1 for extent in value.shape if extent > 1) > 1 and how.given:
        return False
    numbers = value.detach().flatten()[:64].tolist()
    written = all(_is_short(number) for number in numbers)
    return not written and not (how.given and (len(numbers) < 2 or numbers == sorted(numbers)))


def _is_short(number: float) -> bool:
    return abs(number - float(f"{number:.{_SHORT}g}")) <= 1e-6 * abs(number)


def _parts(thing: object, depth: int) -> Iterator[object]:
    if isinstance(thing, torch.Tensor | nn.Module):
        yield thing
    elif depth and isinstance(thing, Mapping):
        for value in thing.values():
            yield from _parts(value, depth - 1)
    elif depth and isinstance(thing, list | tuple):
        for value in thing:
            yield from _parts(value, depth - 1)

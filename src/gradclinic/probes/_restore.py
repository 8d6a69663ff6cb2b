"""Experiments move weights, modes and random streams; afterwards all of it is as it was, bit for bit."""

from __future__ import annotations

import functools
import inspect
import random
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from gradclinic.case import Case

Undo = Callable[[], None]
LARGEST_DATA = 1 << 30
"""Bytes of a data set that are copied to be put back; a larger one is read without a copy."""


@contextmanager
def undisturbed(case: Case) -> Iterator[None]:
    """Whatever happens inside, the case's objects and every random stream come out unchanged."""
    undo = keep(case)
    try:
        yield
    finally:
        undo()


def keep(case: Case) -> Undo:
    """Remember the case as it is; the function returned puts it back, as often as it is called."""
    seen: set[int] = set()
    undos = [_keep_random()]
    for module in modules_of(case):
        undos += [_keep_module(part, seen) for part in module.modules() if id(part) not in seen]
    undos.append(_keep_value(case.batch, seen))
    undos.append(_keep_loader(case.loader, seen))

    def restore() -> None:
        for undo in undos:
            undo()

    return restore


@contextmanager
def random_state() -> Iterator[Undo]:
    """The function given rewinds every random stream to where the block began; leaving it does so too."""
    rewind = _keep_random()
    try:
        yield rewind
    finally:
        rewind()


def modules_of(case: Case) -> list[Module]:
    """The model, and what the case's functions reach by themselves: a discriminator, a teacher."""
    found = {id(case.model): case.model}
    functions = [case.loss, case.forward, *(case.terms or {}).values()]
    for function in functions:
        for value in _reached_by(function):
            if isinstance(value, Module):
                found.setdefault(id(value), value)
    return list(found.values())


def _reached_by(function: object) -> list[object]:
    if isinstance(function, functools.partial):
        inner = _reached_by(function.func)
        return [*inner, *function.args, *function.keywords.values()]
    reached: list[object] = [function, getattr(function, "__self__", None)]
    plain = getattr(function, "__func__", function)
    if inspect.isfunction(plain):
        names = inspect.getclosurevars(plain)
        reached += [*names.nonlocals.values(), *names.globals.values()]
    return reached


def _keep_module(module: Module, seen: set[int]) -> Undo:
    """Attributes, hooks, mode, parameters and buffers of one module, without its children."""
    seen.add(id(module))
    attributes = dict(module.__dict__)
    undos = [_keep_value(value, seen) for value in attributes.values() if not isinstance(value, Module)]

    def restore() -> None:
        module.__dict__.clear()
        module.__dict__.update(attributes)
        for undo in undos:
            undo()

    return restore


def _keep_value(value: Any, seen: set[int]) -> Undo:
    if isinstance(value, Module) or id(value) in seen:
        return _nothing
    if isinstance(value, Tensor):
        seen.add(id(value))
        return _keep_tensor(value)
    if isinstance(value, torch.Generator):
        state = value.get_state()
        return lambda: _quiet(value.set_state, state)
    if isinstance(value, random.Random):
        drawn = value.getstate()
        return lambda: value.setstate(drawn)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.random.Generator):
            bits = value.bit_generator.state
            return lambda: setattr(value.bit_generator, "state", bits)
        if isinstance(value, numpy.random.RandomState):
            legacy = value.get_state()
            return lambda: _quiet(value.set_state, legacy)
        if isinstance(value, numpy.ndarray) and value.flags.writeable:
            seen.add(id(value))
            copy = value.copy()
            return lambda: value.__setitem__(..., copy)
    if type(value) in (dict, OrderedDict, defaultdict, list, deque, set):
        seen.add(id(value))
        return _keep_container(value, seen)
    if type(value) is tuple:
        return _all([_keep_value(item, seen) for item in value])
    return _nothing


def _keep_tensor(tensor: Tensor) -> Undo:
    if torch.nn.parameter.is_lazy(tensor) or tensor.is_sparse:
        return _nothing
    storage, bits, requires = tensor.detach(), tensor.detach().clone(), tensor.requires_grad
    grad = tensor.grad if tensor.is_leaf else None
    keep_grad = _keep_tensor(grad) if grad is not None else _nothing

    def restore() -> None:
        if tensor.is_leaf and (tensor.data_ptr() != storage.data_ptr() or tensor.shape != storage.shape):
            tensor.data = storage
        storage.data.copy_(bits)
        if tensor.is_leaf:
            tensor.requires_grad_(requires)
            # The gradient first gets its own type back: it may not differ from the tensor's.
            keep_grad()
            tensor.grad = grad

    return restore


def _keep_container(value: Any, seen: set[int]) -> Undo:
    items = list(value.items() if isinstance(value, dict) else value)
    parts = [part for _, part in items] if isinstance(value, dict) else items
    undos = [_keep_value(part, seen) for part in parts]

    def restore() -> None:
        value.clear()
        (value.extend if isinstance(value, (list, deque)) else value.update)(items)
        for undo in undos:
            undo()

    return restore


def _keep_loader(loader: object, seen: set[int]) -> Undo:
    """The random streams of a loader, and the data behind it unless that is too large to copy."""
    undos = []
    for part in (loader, getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)):
        undos.append(_keep_value(getattr(part, "generator", None), seen))
    dataset = getattr(loader, "dataset", None)
    if dataset is not None and hasattr(dataset, "__dict__") and data_bytes(dataset) <= LARGEST_DATA:
        undos += [_keep_object(part, seen) for part in nested_datasets(dataset)]
    return _all(undos)


def nested_datasets(dataset: object) -> list[object]:
    """A data set and those it wraps: Subset, ConcatDataset and their like."""
    found: list[object] = []
    waiting = [dataset]
    while waiting:
        part = waiting.pop()
        if part is None or not hasattr(part, "__dict__") or any(part is known for known in found):
            continue
        found.append(part)
        waiting += [value for value in vars(part).values() if isinstance(value, torch.utils.data.Dataset)]
        waiting += [
            d for d in getattr(part, "datasets", None) or () if isinstance(d, torch.utils.data.Dataset)
        ]
    return found


def data_bytes(dataset: object) -> int:
    leaves = (leaf for part in nested_datasets(dataset) for leaf in _leaves(vars(part)))
    return sum(int(getattr(leaf, "nbytes", 0)) for leaf in leaves)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for part in value.values():
            yield from _leaves(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _keep_object(value: object, seen: set[int]) -> Undo:
    attributes = dict(vars(value))
    undos = [_keep_value(part, seen) for part in attributes.values()]

    def restore() -> None:
        vars(value).clear()
        vars(value).update(attributes)
        for undo in undos:
            undo()

    return restore


def _keep_random() -> Undo:
    """Python's, numpy's and torch's own streams, on every device already in use."""
    python, cpu = random.getstate(), torch.get_rng_state()
    numpy = sys.modules.get("numpy")
    legacy = numpy.random.get_state() if numpy is not None else None
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]

    def restore() -> None:
        random.setstate(python)
        torch.set_rng_state(cpu)
        if numpy is not None and legacy is not None:
            numpy.random.set_state(legacy)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)

    return restore


def _all(undos: list[Undo]) -> Undo:
    def restore() -> None:
        for undo in undos:
            undo()

    return restore


def _quiet(function: Callable[..., object], *args: object) -> None:
    function(*args)


def _nothing() -> None:
    pass

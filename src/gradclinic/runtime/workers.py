"""Generators that every worker of a data loader gets a copy of."""

from __future__ import annotations

import ast
import random
from typing import Any

import torch
from torch.utils.data import DataLoader

from gradclinic.facts.stored import WorkerRandomness
from gradclinic.runtime.names import class_of
from gradclinic.runtime.places import Places
from gradclinic.runtime.plain_state import attributes_read

_KNOWS_ITS_WORKER = ("worker_info", "worker_id")


def shared_generator(loader: DataLoader[Any], places: Places) -> WorkerRandomness | None:
    """A generator that the data set was built with and draws from, in two workers or more."""
    dataset = loader.dataset
    fetch = getattr(type(dataset), "__getitem__", None)
    code = getattr(fetch, "__code__", None)
    if loader.num_workers < 2 or loader.worker_init_fn is not None or code is None:
        return None
    held = {name for name, value in vars(dataset).items() if _is_generator(value)}
    source = class_of(code.co_filename, type(dataset).__name__) if held else None
    if not isinstance(source, ast.ClassDef) or not held & attributes_read(source):
        return None
    if any(word in ast.unparse(source) for word in _KNOWS_ITS_WORKER):
        return None
    name = sorted(held & attributes_read(source))[0]
    return WorkerRandomness(
        loader.num_workers,
        random=True,
        shared=True,
        where=places.named(code.co_filename, code.co_firstlineno, code.co_qualname),
        seen=f"each worker starts with a copy of self.{name}, in the same state",
    )


def _is_generator(value: object) -> bool:
    if isinstance(value, random.Random | torch.Generator):
        return True
    numpys = type(value).__module__.startswith("numpy.random")
    return numpys and type(value).__name__ in ("Generator", "RandomState")

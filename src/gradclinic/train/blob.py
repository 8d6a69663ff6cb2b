"""A state taken apart for storage: large tensors by name, all the rest as bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gradclinic.train.errors import CheckpointError

STORED_BY_NAME = ("optimizers", "ema")
_MARK = "tensor stored as"


def split(state: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of optimizers and average by their place in the state, and the state without them."""
    tensors: dict[str, Tensor] = {}
    rest = {
        name: _taken_out(part, name, tensors) if name in STORED_BY_NAME else part
        for name, part in state.items()
    }
    return tensors, rest


def _taken_out(part: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    if isinstance(part, Tensor):
        tensors[name] = part
        return {_MARK: name}
    if isinstance(part, dict):
        return {key: _taken_out(value, f"{name}/{key}", tensors) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return type(part)(_taken_out(value, f"{name}/{place}", tensors) for place, value in enumerate(part))
    return part


def names_in(rest: Any) -> Iterator[str]:
    if isinstance(rest, dict):
        if _MARK in rest:
            yield rest[_MARK]
            return
        rest = list(rest.values())
    if isinstance(rest, list | tuple):
        for part in rest:
            yield from names_in(part)


def join(rest: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(rest, dict):
        if _MARK in rest:
            return tensors[rest[_MARK]]
        return {key: join(value, tensors) for key, value in rest.items()}
    if type(rest) in (list, tuple):
        return type(rest)(join(value, tensors) for value in rest)
    return rest


def encode(rest: dict[str, Any]) -> Tensor:
    """Bytes that are known to load again with `weights_only=True`."""
    written = io.BytesIO()
    torch.save(rest, written)
    encoded = torch.frombuffer(bytearray(written.getvalue()), dtype=torch.uint8)
    try:
        decode(encoded)
    except Exception as error:
        raise CheckpointError(
            "the state holds an object that cannot be loaded safely (weights_only=True); a scheduler, "
            "sampler or loader must keep plain values and tensors in its state_dict: "
            f"{str(error).splitlines()[0]}"
        ) from error
    return encoded


def decode(encoded: Tensor) -> dict[str, Any]:
    loaded: dict[str, Any] = torch.load(
        io.BytesIO(encoded.numpy().tobytes()), weights_only=True, map_location="cpu"
    )
    return loaded

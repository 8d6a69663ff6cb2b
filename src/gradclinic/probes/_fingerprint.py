"""Bits of tensors and other state as short strings, to be compared across steps, runs and processes."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree


def fingerprint(value: Any, after: str = "") -> str:
    """Equal for equal bits, shapes and types, whatever process computes it."""
    digest = hashlib.sha256(after.encode())
    for path, leaf in pytree.tree_leaves_with_path(value):
        digest.update(pytree.keystr(path).encode())
        digest.update(_bytes(leaf))
    return digest.hexdigest()[:16]


def _bytes(leaf: Any) -> bytes:
    if isinstance(leaf, Tensor):
        dense = leaf.detach().to_dense() if leaf.layout is not torch.strided else leaf.detach()
        flat = dense.cpu().contiguous().reshape(-1).view(torch.uint8)
        return f"{leaf.dtype}{tuple(leaf.shape)}".encode() + bytes(flat.numpy())
    if hasattr(leaf, "tobytes"):
        return f"{leaf.dtype}{leaf.shape}".encode() + bytes(leaf.tobytes())
    return repr(leaf).encode()

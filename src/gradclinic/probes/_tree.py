"""Batches are nested; these take them apart by sample and put them together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils import _pytree as pytree

from gradclinic.errors import UsageError


def tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def map_tensors(function: Callable[[Tensor], Tensor], tree: Any) -> Any:
    return pytree.tree_map_only(Tensor, function, tree)


def sample_count(batch: Any, dim: int = 0) -> int:
    """How many samples a batch holds, when all its tensors agree on it."""
    sizes = {tensor.shape[dim] for tensor in tensors(batch) if tensor.ndim > dim}
    if len(sizes) == 1:
        return int(next(iter(sizes)))
    if not sizes:
        raise UsageError("the batch holds no tensor whose samples could be told apart")
    listed = ", ".join(str(size) for size in sorted(sizes))
    raise UsageError(
        f"the tensors of the batch differ in dimension {dim} ({listed}), so its samples are unknown"
    )


def rows(batch: Any, chosen: Tensor, dim: int = 0) -> Any:
    """The samples `chosen`, as a batch of the same build."""
    return map_tensors(lambda t: t.index_select(dim, chosen.to(t.device)) if t.ndim > dim else t, batch)

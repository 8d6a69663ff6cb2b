"""Embeddings and the layers that read them back out, found to hold the same values in two places."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from gradclinic.runtime.register import Entry
from gradclinic.runtime.values import readable

_FEWEST_ROWS = 8
_AT_A_GLANCE = 8
"""Rows compared before all are."""


@torch.no_grad()
def note_copies(entries: Iterable[Entry]) -> None:
    """Before training, equal random values in an embedding and in a linear layer are no coincidence.

    Layers of one kind may well begin alike: stacks are often made of copies of one layer.
    """
    known = [(entry, weight) for entry in entries if (weight := _matrix(entry)) is not None]
    embeddings = [one for one in known if one[0].owner == "Embedding"]
    for entry, weight in known:
        if entry.owner == "Linear":
            for embedding, table in embeddings:
                if entry.model == embedding.model and _same_rows(weight, table):
                    entry.copy_of = embedding.name


def _matrix(entry: Entry) -> torch.Tensor | None:
    parameter = entry.parameter()
    usable = parameter is not None and entry.registered and entry.trainable and readable(parameter)
    return parameter.detach() if parameter is not None and usable and parameter.dim() == 2 else None


def _same_rows(one: torch.Tensor, other: torch.Tensor) -> bool:
    rows = min(len(one), len(other))
    if rows < _FEWEST_ROWS or one.shape[1] != other.shape[1] or one.data_ptr() == other.data_ptr():
        return False
    if one.device != other.device or one.dtype != other.dtype:
        return False
    glance = one[:_AT_A_GLANCE]
    varied = bool((glance != glance.flatten()[0]).any())
    return varied and torch.equal(glance, other[:_AT_A_GLANCE]) and torch.equal(one[:rows], other[:rows])

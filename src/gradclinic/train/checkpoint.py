"""Checkpoints on disk: whole or not there at all, and never loaded when damaged.

A checkpoint is a directory `checkpoint-000012` written by torch.distributed.checkpoint under a
hidden name, sealed with a list of checksums and only then renamed. Weights, optimizer and average
are entries of their own, sharded where the model is; the rest of each rank's state is one entry.
"""

from __future__ import annotations

import os
import re
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load as load_entries
from torch.distributed.checkpoint.state_dict_saver import save as save_entries

from gradclinic.train import blob, guard, seal
from gradclinic.train.errors import CheckpointError
from gradclinic.train.layout import unwrapped
from gradclinic.train.ranks import Ranks
from gradclinic.train.reader import SafeReader

if TYPE_CHECKING:
    from gradclinic.train.step import TrainStep

_NAME = re.compile(r"checkpoint-(\d{6,})")


def save(step: TrainStep, directory: str | Path, keep: int) -> Path:
    if keep < 1:
        raise CheckpointError(f"save(keep={keep!r}): expected 1 or more checkpoints to keep")
    guard.refuse_broken_weights(step.models, "before saving")
    ranks, root = step.ranks, Path(directory)
    tensors, rest = blob.split(step.state_dict())
    entries = {**_weights(step), **tensors, _rank_key(ranks.number): blob.encode(rest)}
    root.mkdir(parents=True, exist_ok=True)
    serial = max((number for number, _ in _existing(root)), default=0) + 1
    # Rank 0 decides: it may see a directory that the others do not see yet.
    serial = ranks.everyones(serial)[0]
    final, hidden = root / f"checkpoint-{serial:06d}", root / f".writing-{serial:06d}"
    if ranks.number == 0 and hidden.exists():
        shutil.rmtree(hidden)
    ranks.everyones(None)
    with _quiet_alone(ranks):
        save_entries(entries, checkpoint_id=hidden, process_group=ranks.group, no_dist=ranks.alone)
    sums = ranks.everyones(seal.checksums(hidden, ranks.number, ranks.count))
    if ranks.number == 0:
        seal.close(hidden, {name: entry for part in sums for name, entry in part.items()}, ranks.count)
        os.rename(hidden, final)
        seal.sync_directory(root)
        for _, old in _existing(root)[keep:]:
            shutil.rmtree(old, ignore_errors=True)
    ranks.everyones(None)
    return final


def load_newest(step: TrainStep, directory: str | Path) -> Path | None:
    """The newest checkpoint whose checksums hold; a damaged one is named in a warning and passed over."""
    ranks = step.ranks
    chosen: str | None = None
    refused: list[str] = []
    if ranks.number == 0:
        for _, path in _existing(Path(directory)):
            if fault := seal.fault_of(path):
                refused.append(f"{path}: {fault}")
                continue
            chosen = str(path)
            break
    chosen, refused = ranks.everyones((chosen, refused))[0]
    for fault in refused:
        warnings.warn(f"a checkpoint is damaged and is passed over: {fault}", RuntimeWarning, stacklevel=3)
    if chosen is None:
        if refused:
            raise CheckpointError(f"no checkpoint in {directory} is sound: {'; '.join(refused)}")
        return None
    load(step, chosen)
    return Path(chosen)


def load(step: TrainStep, path: str | Path) -> None:
    """Load one checkpoint. Everything is checked before the first weight changes."""
    path = Path(path)
    if fault := seal.fault_of(path):
        raise CheckpointError(f"{path}: {fault}; use an earlier checkpoint")
    ranks = step.ranks
    if (written := seal.ranks_of(path)) != ranks.count:
        raise CheckpointError(
            f"{path} was written by {written} ranks and this run has {ranks.count}; an exact resume needs "
            "as many"
        )
    reader = SafeReader(path)
    stored: Metadata = reader.read_metadata()
    weights = _weights(step)
    _check_weights(path, weights, stored)
    key = _rank_key(ranks.number)
    state = {key: _empty(stored, key)}
    _load_into(state, reader, ranks)
    rest = blob.decode(state[key])
    likes = _likes(step)
    tensors = {name: _empty(stored, name, likes) for name in blob.names_in(rest)}
    _load_into(tensors, reader, ranks)
    step.load_state_dict(blob.join(rest, tensors))
    _load_into(weights, reader, ranks)


def _load_into(entries: dict[str, Tensor], reader: SafeReader, ranks: Ranks) -> None:
    with _quiet_alone(ranks):
        load_entries(entries, storage_reader=reader, process_group=ranks.group, no_dist=ranks.alone)


@contextmanager
def _quiet_alone(ranks: Ranks) -> Iterator[None]:
    """torch warns that one process saves alone, which is what it was told to do."""
    with warnings.catch_warnings():
        if ranks.alone:
            warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def _existing(root: Path) -> list[tuple[int, Path]]:
    """Newest first."""
    if not root.is_dir():
        return []
    matched = ((_NAME.fullmatch(path.name), path) for path in root.iterdir())
    return sorted(((int(match[1]), path) for match, path in matched if match), reverse=True)


def _rank_key(rank: int) -> str:
    return f"rank-{rank}"


def _weights(step: TrainStep) -> dict[str, Tensor]:
    """The models' own tensors: loading writes into them in place."""
    return {
        f"model-{number}/{name}": tensor
        for number, model in enumerate(step.models)
        for name, tensor in unwrapped(model).state_dict().items()
        if isinstance(tensor, Tensor)
    }


def _check_weights(path: Path, weights: dict[str, Tensor], stored: Metadata) -> None:
    saved = {name: item for name, item in stored.state_dict_metadata.items() if name.startswith("model-")}
    for name, tensor in weights.items():
        item = saved.pop(name, None)
        shape = tuple(item.size) if isinstance(item, TensorStorageMetadata) else None
        if shape != tuple(tensor.shape):
            has = "no such tensor" if shape is None else f"shape {shape}"
            raise CheckpointError(
                f"{path} does not fit the model: {name.partition('/')[2]!r} has shape {tuple(tensor.shape)} "
                f"here and {has} there; build the model as the saved run did"
            )
    if saved:
        raise CheckpointError(
            f"{path} does not fit the model: it holds {next(iter(saved)).partition('/')[2]!r}, which the "
            "model has not; build the model as the saved run did"
        )


def _likes(step: TrainStep) -> dict[str, Tensor]:
    """For each prefix of saved names the tensor that shows how its entries are sharded."""
    found: dict[str, Tensor] = {}
    for number, optimizer in enumerate(step.updater.optimizers):
        held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        found.update({f"optimizers/{number}/state/{place}/": p for place, p in enumerate(held)})
    if step.updater.ema is not None:
        average = step.updater.ema.state_dict()["average"]
        found.update({f"ema/average/{place}": tensor for place, tensor in enumerate(average)})
    return found


def _empty(stored: Metadata, name: str, likes: dict[str, Tensor] | None = None) -> Tensor:
    """Room for one saved entry, sharded as the parameter it belongs to."""
    item: Any = stored.state_dict_metadata[name]
    like = (likes or {}).get(name, (likes or {}).get(name.rpartition("/")[0] + "/"))
    if like is not None and hasattr(like, "full_tensor") and tuple(like.shape) == tuple(item.size):
        return torch.empty_like(like, dtype=item.properties.dtype, requires_grad=False)
    return torch.empty(item.size, dtype=item.properties.dtype)

"""Run a function on two ranks of a gloo group and bring back what each returns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS = 2


def on_ranks(work: Callable[..., Any], directory: Path, *arguments: Any) -> list[Any]:
    """What `work(rank, *arguments)` returned on each rank; an error on one is raised here."""
    directory.mkdir(parents=True, exist_ok=True)
    mp.spawn(_one_rank, args=(work, str(directory), arguments), nprocs=RANKS)
    return [torch.load(directory / f"result-{rank}", weights_only=False) for rank in range(RANKS)]


def _one_rank(rank: int, work: Callable[..., Any], directory: str, arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", f"file://{directory}/meeting", rank=rank, world_size=RANKS)
    try:
        torch.save(work(rank, *arguments), f"{directory}/result-{rank}")
    finally:
        dist.destroy_process_group()

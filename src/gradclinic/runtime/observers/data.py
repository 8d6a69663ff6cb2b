"""Passes over a DataLoader."""

from __future__ import annotations

import weakref
from functools import wraps
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data._utils.fetch import _MapDatasetFetcher
from torch.utils.data.dataloader import _BaseDataLoaderIter

from gradclinic.facts import EventKind
from gradclinic.facts.stored import WorkerRandomness
from gradclinic.runtime.patching import unseen
from gradclinic.runtime.scene import Scene
from gradclinic.runtime.stored import StoredRows
from gradclinic.runtime.workers import shared_generator


def install(scene: Scene) -> None:
    recorder = scene.recorder
    shared: list[WorkerRandomness] = []
    loops: weakref.WeakKeyDictionary[DataLoader[Any], str] = weakref.WeakKeyDictionary()

    def begun(_: object, loader: DataLoader[Any]) -> None:
        if loader not in loops:
            told = shared_generator(loader, recorder.places)
            shared.extend([told] if told is not None else [])
        loop = loops.setdefault(loader, f"loader-{len(loops) + 1}")
        recorder.emit(EventKind.EPOCH_BEGIN, loop=loop, known=True)

    def fetched(reader: _BaseDataLoaderIter) -> None:
        recorder.emit(EventKind.BATCH)
        chosen_by = getattr(reader, "_index_sampler", None)
        scene.sampler = weakref.ref(getattr(chosen_by, "sampler", chosen_by))

    def exhausted() -> None:
        recorder.emit(EventKind.EPOCH_END)

    fetch = _BaseDataLoaderIter.__next__

    @wraps(fetch)
    def __next__(self: _BaseDataLoaderIter) -> Any:  # noqa: N807
        try:
            batch = fetch(self)
        except StopIteration:
            recorder.safely(exhausted)
            raise
        recorder.safely(fetched, self)
        return batch

    stored = StoredRows(scene)
    scene.wrap(_MapDatasetFetcher, "fetch", scope="fetch", before=stored.before, after=stored.after)
    scene.facts.append(stored.tell)
    scene.facts.append(lambda: shared)
    scene.wrap(DataLoader, "__iter__", scope="loader", after=begun)
    scene.patches.replace(_BaseDataLoaderIter, "__next__", unseen(__next__))

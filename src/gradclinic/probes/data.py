"""Is the data what the training takes it for?

Three questions to a case with a loader: do inputs tell anything about their labels, or do labels
dealt out anew teach as much; does reading a sample write into the stored data; do workers draw
different randomness.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from gradclinic.case import Case
from gradclinic.facts.stored import LabelAlignment, Mutation, StoredData, WorkerRandomness
from gradclinic.probes._budget import Budget
from gradclinic.probes._fingerprint import fingerprint
from gradclinic.probes._losses import LossWatch
from gradclinic.probes._restore import nested_datasets, random_state, undisturbed
from gradclinic.probes._trainee import Trainee, loss_of
from gradclinic.probes._tree import map_tensors, tensors
from gradclinic.probes._where import function_line
from gradclinic.probes.outcome import Outcome

FACTS = (StoredData, WorkerRandomness, LabelAlignment)
"""What this experiment finds out."""

FETCHED = 64
CONTROLS = 3
TRAINED_ON, HELD_OUT = 8, 4
"""Batches to learn from and to be judged on."""
ROUNDS = 60
ENOUGH = 0.5
"""Learned by heart to this part of the training loss, a model has shown that it can learn."""


def stored_data(case: Case) -> StoredData | None:
    """Fetch samples and see whether what is stored changes; None when the samples are out of reach."""
    dataset = dataset_of(case)
    if dataset is None:
        return None
    count = min(FETCHED, len(dataset))  # type: ignore[arg-type]
    mutations: dict[str, Mutation] = {}
    with undisturbed(case), random_state() as rewind:
        for index in range(count):
            before = _stored(dataset)
            rewind()
            first = fingerprint(dataset[index])
            changed = [path for path, bits in _stored(dataset).items() if before.get(path, bits) != bits]
            rewind()
            # A cache being filled changes too, and gives the same sample again: no harm, no finding.
            if changed and fingerprint(dataset[index]) != first:
                for path in changed:
                    mutations.setdefault(path, Mutation(path, index, _fetch_line(dataset)))
    return StoredData(count, tuple(mutations.values()))


def dataset_of(case: Case) -> Dataset[Any] | None:
    """The map-style data set behind the loader."""
    dataset = getattr(case.loader, "dataset", None)
    if dataset is None or isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        return None
    return dataset  # type: ignore[no-any-return]


def _stored(dataset: object) -> dict[str, str]:
    """The bits of every tensor and array a data set holds, by the path to it."""
    found = {}
    for part in nested_datasets(dataset):
        prefix = "" if part is dataset else f"{type(part).__name__}."
        for name, value in vars(part).items():
            if not isinstance(value, Dataset) and _holds_data(value):
                found[prefix + name] = fingerprint(value)
    return found


def _holds_data(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and _holds_data(value[0])
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _fetch_line(dataset: object) -> Any:
    for part in nested_datasets(dataset):
        found = function_line(getattr(type(part), "__getitem__", None))
        if found is not None:
            return found
    return None


class _SameSample(Dataset[Any]):
    """One sample, twice per worker, with the worker that fetched it."""

    def __init__(self, dataset: Dataset[Any]) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[int, str]:
        worker = torch.utils.data.get_worker_info()
        return (worker.id if worker else -1), fingerprint(self.dataset[0])


def worker_randomness(case: Case) -> WorkerRandomness | None:
    """Two workers fetch one sample; None where there are no workers to compare."""
    loader, dataset = case.loader, dataset_of(case)
    if not isinstance(loader, DataLoader) or dataset is None or loader.num_workers < 2:
        return None
    with undisturbed(case):
        echo = DataLoader(
            _SameSample(dataset),
            batch_size=1,
            num_workers=2,
            collate_fn=list,
            worker_init_fn=loader.worker_init_fn,
            generator=loader.generator,
            multiprocessing_context=loader.multiprocessing_context,
        )
        drawn: dict[int, list[str]] = {}
        for ((worker, bits),) in echo:
            drawn.setdefault(worker, []).append(bits)
    one, two = drawn.get(0, []), drawn.get(1, [])
    random = len(set(one)) > 1
    return WorkerRandomness(loader.num_workers, random, random and one == two, _fetch_line(dataset))


def label_alignment(case: Case, budget: Budget | None = None) -> LabelAlignment | None:
    """Train on the pairs and on shuffled ones; None when the labels cannot be found in the batches."""
    budget = budget or Budget()
    with undisturbed(case):
        batches = list(itertools.islice(case.batches(), TRAINED_ON + HELD_OUT))
    if len(batches) < TRAINED_ON + HELD_OUT:
        return None
    with undisturbed(case), LossWatch() as watch:
        loss_of(case, batches[0])
    places = {_place(batches[0], call.target) for call in watch.calls}
    if len(places) != 1 or None in places:
        return None
    (place,) = places
    train, held = batches[:TRAINED_ON], batches[TRAINED_ON:]
    start, real, memorised = _learn(case, train, held, budget, "real pairs")
    shuffled = []
    generator = torch.Generator().manual_seed(0)
    for number in range(CONTROLS):
        if budget.spent:
            return None
        dealt = _dealt_anew(train, place, generator)
        shuffled.append(_learn(case, dealt, held, budget, f"shuffled labels {number + 1} of {CONTROLS}")[1])
    return LabelAlignment(start, real, tuple(shuffled), memorised, function_line(_loader_line(case)))


def _loader_line(case: Case) -> object:
    return case.loader if callable(case.loader) else getattr(type(dataset_of(case)), "__getitem__", None)


def _place(batch: Any, target: torch.Tensor) -> int | None:
    """Which tensor of the batch the loss was given as its target."""
    for index, tensor in enumerate(tensors(batch)):
        if tensor.data_ptr() == target.data_ptr() and tensor.numel() == target.numel():
            return index
    return None


def _dealt_anew(batches: list[Any], place: int | None, generator: torch.Generator) -> list[Any]:
    """The same batches with the labels of all of them in another order."""
    labels = [tensors(batch)[place or 0] for batch in batches]
    order = torch.randperm(sum(len(part) for part in labels), generator=generator)
    every = torch.cat(labels)[order.to(labels[0].device)]
    dealt = torch.split(every, [len(part) for part in labels])

    def replaced(batch: Any, new: torch.Tensor) -> Any:
        old = tensors(batch)[place or 0]
        return map_tensors(lambda tensor: new if tensor is old else tensor, batch)

    return [replaced(batch, new) for batch, new in zip(batches, dealt, strict=True)]


def _learn(
    case: Case, train: list[Any], held: list[Any], budget: Budget, what: str
) -> tuple[float, float, float]:
    """Loss on held-out batches before and at its best, and the part of the training loss removed."""
    with undisturbed(case):
        case.model.train()
        trainee = Trainee(case, torch.optim.Adam(list(case.parameters().values()), lr=5e-3))
        start = best = _mean_loss(case, held)
        first, last = _mean_loss(case, train), 0.0
        for _ in budget.steps(f"learning from {what}", ROUNDS):
            for batch in train:
                trainee.step(batch)
            best = min(best, _mean_loss(case, held))
            last = _mean_loss(case, train)
            if last <= (1 - ENOUGH) * first:
                break
    return start, best, (first - last) / max(abs(first), 1e-12)


def _mean_loss(case: Case, batches: list[Any]) -> float:
    return sum(loss_of(case, batch) for batch in batches) / len(batches)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It needs nothing but the case."""


def run(case: Case, args: argparse.Namespace, budget: Budget) -> Outcome:
    stored, workers = stored_data(case), worker_randomness(case)
    labels = label_alignment(case, budget)
    gaps = {}
    if stored is None:
        gaps["stored data"] = "the case's loader has no data set that can be indexed"
    if workers is None:
        gaps["randomness of workers"] = "the case's loader has fewer than two workers"
    if labels is None:
        gaps["inputs and labels"] = (
            f"needs {TRAINED_ON + HELD_OUT} batches, a loss of torch.nn.functional on their labels, and time"
        )
    facts = tuple(fact for fact in (stored, workers, labels) if fact is not None)
    return Outcome(facts, conclusion(stored, workers, labels), gaps=gaps)


def conclusion(
    stored: StoredData | None, workers: WorkerRandomness | None, labels: LabelAlignment | None
) -> str:
    told = []
    if labels is not None:
        told.append(
            f"held-out loss {labels.real:.4g} with the pairs as they come, "
            f"{min(labels.shuffled):.4g} with labels dealt anew"
        )
    if stored is not None:
        count = len(stored.mutations)
        changed = f"{count or 'no'} stored tensor{'' if count == 1 else 's'} changed"
        told.append(f"{stored.fetched} samples fetched, {changed}")
    if workers is not None:
        random = "draw the same randomness" if workers.shared else "draw their own randomness"
        told.append(f"{workers.workers} workers {random if workers.random else 'draw nothing at random'}")
    return f"data: {'; '.join(told) or 'the case has no loader to examine'}"

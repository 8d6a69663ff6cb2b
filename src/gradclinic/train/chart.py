"""What a TrainStep remembers of its updates, so that it can be diagnosed without measuring anything twice."""

from __future__ import annotations

import math

from gradclinic.facts import Actor, ActorKind
from gradclinic.facts.training import ABSENT, Step, TensorInfo, Training, is_adaptive
from gradclinic.findings import Diagnosis
from gradclinic.thinning import Thinned
from gradclinic.train.layout import unwrapped
from gradclinic.train.update import Update
from gradclinic.train.updater import Updater


class Chart:
    def __init__(self) -> None:
        self._updates: Thinned[tuple[int, Update]] = Thinned()
        self._count = 0

    def note(self, update: Update) -> None:
        """Keeps the numbers where they are: none is brought from its device before somebody asks."""
        self._updates.append((self._count, update))
        self._count += 1

    def diagnosis(self, updater: Updater, target: str) -> Diagnosis:
        from gradclinic.engine import judge
        from gradclinic.facts import Observation, Source
        from gradclinic.findings import Summary
        from gradclinic.judged import judged

        observation = Observation(Source.RUNTIME, ((self._training(updater),),) if self._count else ())
        findings = judge([observation])
        return Diagnosis(
            command="train",
            target=target,
            findings=findings,
            judged=judged([observation], findings).topics,
            summary=Summary(steps=self._count),
        )

    def _training(self, updater: Updater) -> Training:
        layout = updater.layout
        modules = {
            name: type(module).__name__
            for model in updater.models
            for name, module in unwrapped(model).named_modules()
        }
        tensors = tuple(
            TensorInfo(name, tuple(tensor.shape), modules.get(name.rpartition(".")[0], ""))
            for name, tensor in zip(layout.names, layout.parameters, strict=True)
        )
        kind = type(updater.optimizers[0]).__name__
        bound = updater.clip.bound
        limit = bound if bound is not None else updater.clip.limit
        steps = tuple(_step(index, update, layout.names, limit) for index, update in self._updates.rows())
        return Training(
            optimizer=Actor("optimizer", ActorKind.OPTIMIZER, "optimizer", kind),
            tensors=tensors,
            steps=steps,
            taken=updater.counters.updates,
            skipped=updater.counters.skipped,
            alone=len(updater.optimizers) == 1,
            value_clip=bound is not None,
            adaptive=is_adaptive(kind),
            climbs=any(group.get("maximize") for one in updater.optimizers for group in one.param_groups),
        )


def _step(index: int, update: Update, names: tuple[str, ...], limit: float | None) -> Step:
    norms = update.norms
    return Step(
        index,
        update.loss if math.isfinite(update.loss) else None,
        update.norm,
        min(update.norm, limit) if limit is not None and update.clipped else update.norm,
        update.learning_rates,
        scale=update.loss_scale if update.loss_scale != 1.0 else None,
        skipped=not update.applied,
        limit=limit,
        gradients=tuple(norms.get(name, ABSENT) for name in names),
    )

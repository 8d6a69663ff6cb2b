"""Train and eval mode: in which the updates were made, in which the model was judged."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.loss import _Loss
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader

from gradclinic.facts import EventKind, Location
from gradclinic.facts.modes import Evaluation, ModeOfTraining
from gradclinic.runtime.actors import parameters_of
from gradclinic.runtime.scene import Scene
from gradclinic.runtime.verdict import Verdict

_JUDGES = ("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "binary_cross_entropy_with_logits")
_A_FEW = 3


@dataclass
class _Model:
    module: weakref.ref[nn.Module]
    name: str
    layers: tuple[str, ...]
    trainable: bool
    in_train: int = 0
    in_eval: int = 0
    where: Location | None = None
    set_at: Location | None = None
    holders: MutableMapping[torch.optim.Optimizer, tuple[int, bool]] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    """Optimizers, with how many parameters they had when they were asked, and whether any is the model's."""


@dataclass
class _Pass:
    """One pass over a data loader."""

    loader: weakref.ref[Any]
    backwards: int = 0
    forwards: dict[tuple[int, Location, bool, bool], int] = field(default_factory=dict)


class Modes:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.verdict = Verdict(scene.recorder, self._count_judged)
        self._models: dict[int, _Model] = {}
        """By the address of the module, the latest that had it."""
        self._since_step: dict[int, tuple[_Model, Location, bool]] = {}
        self._pass: _Pass | None = None
        self._training_loaders: set[int] = set()
        self._judged: dict[tuple[int, Location], int] = {}
        self._last_quiet: tuple[int, Location] | None = None
        self._graphs: dict[tuple[int, Location], int] = {}
        self._graph_run: list[tuple[int, Location]] = []
        self._found: dict[tuple[object, ...], Evaluation] = {}

    def about_to_run(self, *args: Any, **kwargs: Any) -> None:
        if self.verdict.following:
            self.verdict.stop()

    def forward(self, module: nn.Module, result: Any) -> None:
        known = self._model(module)
        if not known.trainable:
            return
        grad = torch.is_grad_enabled()
        here = self._scene.recorder.places.here()
        carries = grad and any(t.requires_grad for t in _tensors(result))
        key = (id(module), here)
        if self._pass is not None:
            kind = (*key, module.training, carries)
            self._pass.forwards[kind] = self._pass.forwards.get(kind, 0) + 1
        if grad:
            self._since_step[id(module)] = (known, here, module.training)
        self._last_quiet = key if not grad and module.training and known.layers else None
        if self._last_quiet is not None:
            self.verdict.follow(_tensors(result))
        if carries and not module.training:
            self._graph_run.append(key)
        elif not carries:
            self._graph_run.clear()

    def judged(self, *args: Any, **kwargs: Any) -> None:
        """A loss or a score was computed; with gradients off it can only be for looking at."""
        if not torch.is_grad_enabled():
            self._count_judged()

    def _count_judged(self) -> None:
        if self._last_quiet is not None:
            self._judged[self._last_quiet] = self._judged.get(self._last_quiet, 0) + 1
            self._last_quiet = None

    def differentiated(self, *args: Any, **kwargs: Any) -> None:
        self.verdict.stop()
        self._count_graphs()
        if self._pass is not None:
            self._pass.backwards += 1

    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        for known, here, training in self._since_step.values():
            if not _holds(optimizer, known):
                continue
            if training:
                known.in_train += 1
            elif known.layers:
                known.in_eval += 1
                if known.where is None:
                    mode = self._scene.recorder.latest(EventKind.MODE)
                    known.where = here
                    known.set_at = mode.where if mode is not None and not mode.attrs["training"] else None
        self._since_step.clear()

    def pass_begins(self, _: object, loader: DataLoader[Any]) -> None:
        self._close_pass()
        self._pass = _Pass(weakref.ref(loader))

    def tell(self) -> list[object]:
        self._close_pass()
        told: list[object] = [
            ModeOfTraining(m.name, m.in_train, m.in_eval, m.layers, m.where, m.set_at)
            for m in self._models.values()
            if m.layers and (m.in_train or m.in_eval)
        ]
        for (address, where), count in self._judged.items():
            self._evaluation(address, where, count, True, False, "judged by a loss or score, gradients off")
        for (address, where), count in self._graphs.items():
            self._evaluation(address, where, count, False, True, "in eval mode, and no backward followed")
        return [*told, *self._found.values()]

    def _count_graphs(self) -> None:
        """Forwards in eval mode before this backward: only the last can be its own."""
        self._settle(self._graph_run[:-1])

    def _settle(self, run: list[tuple[int, Location]]) -> None:
        for key in set(run):
            count = run.count(key)
            if count >= _A_FEW:
                self._graphs[key] = max(self._graphs.get(key, 0), count)
        self._graph_run.clear()

    def _close_pass(self) -> None:
        self._settle(list(self._graph_run))
        ended, self._pass = self._pass, None
        if ended is None:
            return
        if ended.backwards:
            self._training_loaders.add(id(ended.loader()))
            return
        if id(ended.loader()) in self._training_loaders:
            return
        for (address, where, training, graph), count in ended.forwards.items():
            if count >= 2 and (training or graph):
                self._evaluation(
                    address, where, count, training, graph, "a pass over data without a backward"
                )

    def _evaluation(
        self, address: int, where: Location, count: int, training: bool, graph: bool, evidence: str
    ) -> None:
        model = self._models.get(address)
        if model is None or not (model.in_train or model.in_eval):
            return
        layers = model.layers if training else ()
        self._found.setdefault(
            (where, training, graph),
            Evaluation(model.name, where, count, training, graph, layers, evidence),
        )

    def _model(self, module: nn.Module) -> _Model:
        known = self._models.get(id(module))
        if known is None or known.module() is not module:
            known = self._models[id(module)] = self._introduced(module)
        return known

    def _introduced(self, module: nn.Module) -> _Model:
        actor = self._scene.actors.id_of(module)
        name = self._scene.actors.known[actor].name if actor else type(module).__name__
        trainable = not isinstance(module, _Loss) and any(True for _ in module.parameters())
        return _Model(weakref.ref(module), name, _mode_matters(module) if trainable else (), trainable)


def install(scene: Scene) -> None:
    recorder = scene.recorder
    modes = Modes(scene)

    def step_hook(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling():
            recorder.safely(modes.stepped, optimizer)

    scene.forwards.before.append(modes.about_to_run)
    scene.forwards.after.append(modes.forward)
    scene.wrap(torch.autograd, "backward", scope="mode backward", before=modes.differentiated)
    scene.wrap(torch.autograd, "grad", scope="mode grad", before=modes.differentiated)
    scene.wrap(DataLoader, "__iter__", scope="mode pass", after=modes.pass_begins)
    for name in _JUDGES:
        scene.wrap(functional, name, scope="mode loss", after=modes.judged)
    scene.patches.on_undo(modes.verdict.stop)
    scene.patches.on_undo(register_optimizer_step_post_hook(step_hook).remove)
    scene.facts.append(modes.tell)


def _holds(optimizer: torch.optim.Optimizer, known: _Model) -> bool:
    count = sum([len(group["params"]) for group in optimizer.param_groups])
    then, holds = known.holders.get(optimizer, (-1, False))
    module = known.module()
    if then != count and module is not None:
        own = {id(parameter) for parameter in module.parameters()}
        holds = any(id(parameter) in own for parameter in parameters_of(optimizer))
        known.holders[optimizer] = (count, holds)
    return holds


def _mode_matters(module: nn.Module) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for part in module.modules():
        rate = getattr(part, "dropout", part.p if isinstance(part, _DropoutNd) else 0)
        drops = isinstance(part, _DropoutNd | nn.RNNBase | nn.MultiheadAttention) and rate
        frozen = all(not p.requires_grad for p in part.parameters()) and any(True for _ in part.parameters())
        if drops or (isinstance(part, _NormBase) and part.track_running_stats and not frozen):
            found[type(part).__name__] = None
    return tuple(found)


def _tensors(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    values = (
        result.values() if isinstance(result, dict) else result if isinstance(result, list | tuple) else ()
    )
    return [one for one in values if isinstance(one, torch.Tensor)]

"""The numbers of every update: losses, gradients, rates, scale, clipping, weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.amp.grad_scaler import GradScaler
from torch.nn.utils import clip_grad
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.weak import WeakIdKeyDictionary

from gradclinic.facts import EventKind, Location
from gradclinic.facts.training import Activation, ActivationSample, Training
from gradclinic.runtime import graph
from gradclinic.runtime.actors import parameters_of
from gradclinic.runtime.lines import Lines
from gradclinic.runtime.observers.clipping import limit_of, reading_once
from gradclinic.runtime.observers.scaling import SCALER_STEP
from gradclinic.runtime.patching import observed
from gradclinic.runtime.scene import Scene, remember_recent
from gradclinic.runtime.statistics.account import Account
from gradclinic.runtime.statistics.activations import Measured
from gradclinic.runtime.statistics.inspector import Inspector, Reading
from gradclinic.runtime.statistics.memory import weigh
from gradclinic.runtime.statistics.naming import named
from gradclinic.runtime.values import readable

_SCOPE = "statistics"
_UNDER_WAY = 2
"""Updates after which optimizers have made what they remember."""


class _Sent(NamedTuple):
    """The backward under way: where it was called, its losses, each with its scale, and what was read."""

    where: Location | None = None
    losses: Sequence[tuple[torch.Tensor, float]] = ()
    reading: Reading | None = None


class Statistics:
    """The accounts of all optimizers, and which of them an observed call belongs to."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.accounts: dict[str, Account] = {}
        self._sites: dict[Location, frozenset[str]] = {}
        self._owners: MutableMapping[torch.nn.Module, frozenset[str]] = WeakIdKeyDictionary()
        self._unscaled: dict[tuple[str, int], torch.Tensor] = {}
        self._under_way: list[int] = []
        self._amp_scale: float | None = None
        self.lines = Lines(scene.recorder.places)
        self.inspector = Inspector(self.lines)
        self._sent = _Sent()

    def account(self, optimizer: torch.optim.Optimizer) -> Account | None:
        actor = self.scene.optimizer(optimizer)
        if actor is None:
            return None
        known = self.accounts.get(actor)
        if known is None:
            known = self.accounts[actor] = Account(actor, optimizer, self.scene.listeners)
            self._owners.clear()
        return known

    def optimizer_built(self, *args: Any, **kwargs: Any) -> None:
        self.lines.optimizer_built()

    def model_compiled(self, *args: Any, **kwargs: Any) -> None:
        self.lines.model_compiled()

    def about_to_send_back(self, tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
        """The graph is there now and gone afterwards."""
        self._sent = _Sent()
        roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        roots = [root for root in roots[: None if grad_tensors is None else 1] if _is_a_number(root)]
        if not roots:
            return
        where = self.scene.recorder.places.here()
        losses = [self._without_scale(root) for root in roots]
        odd = any(account.odd for account in self.accounts.values())
        reading = self.inspector.look(roots[0], losses[0][0], where, odd=odd)
        self._sent = _Sent(where, losses if grad_tensors is None else [], reading)

    def sent_back(self, *args: Any, **kwargs: Any) -> None:
        self.lines.backward_done()
        sent, self._sent = self._sent, _Sent()
        if sent.where is None:
            return
        for account in self._concerned(sent.where):
            for loss, scale in sent.losses:
                account.loss_sent_back(sent.where, loss, scale)
        if sent.reading is not None:
            self._take(sent.reading, sent.where)

    @torch.no_grad()
    def _take(self, reading: Reading, where: Location) -> None:
        for actor, optimizer in self.scene.actors.optimizers():
            account = self.accounts.get(actor)
            if account is not None and account.actor in self._sites.get(where, frozenset({actor})):
                account.signals.take(reading, account.index, self.inspector.candidate(where))
                if reading.activations:
                    told = tuple(_told(one, at, account.index) for one, at in reading.activations)
                    self.scene.listeners.activated(actor, told)
                if reading.broken:
                    account.loss_broke(optimizer, reading.origin)

    def _without_scale(self, root: torch.Tensor) -> tuple[torch.Tensor, float]:
        node = graph.below(root.grad_fn, self._unscaled) if self._unscaled else None
        if node is None:
            return root.detach().reshape(()), 1.0
        original = self._unscaled[graph.key_of(node)]
        if node is root.grad_fn:
            return original, 1.0
        return root.detach().reshape(()), self._amp_scale or 1.0

    def scaled(self, result: Any, scaler: GradScaler, outputs: Any) -> None:
        """Keep the loss as it was before it was multiplied."""
        if not scaler.is_enabled():
            return
        self._amp_scale = scaler.get_scale()
        if isinstance(result, torch.Tensor) and result.grad_fn is not None and outputs.numel() == 1:
            remember_recent(
                self._unscaled, graph.key_of(result.grad_fn), outputs.detach().reshape(()), most=4
            )

    def _concerned(self, where: Location) -> Iterator[Account]:
        """The optimizers a backward from this line fills the gradients of, as the tape knows them."""
        recorder = self.scene.recorder
        event = None if recorder.full else recorder.latest(EventKind.BACKWARD)
        if event is not None and event.optimizers is not None:
            self._sites[where] = self._sites.get(where, frozenset()) | event.optimizers
        wanted = self._sites.get(where)
        for _, optimizer in self.scene.actors.optimizers():
            account = self.account(optimizer)
            if account is not None and (wanted is None or account.actor in wanted):
                yield account

    def optimizer_cleared(
        self, _: object, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any
    ) -> None:
        account = self.account(optimizer)
        if account is not None:
            account.cleared()

    def module_cleared(self, _: object, module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
        owners = self._owners.get(module)
        if owners is None:
            owners = self._owners[module] = self.scene.actors.within(module.parameters())
        for actor in owners:
            if actor in self.accounts:
                self.accounts[actor].cleared()

    def clipped(self, norm: Any, parameters: list[torch.Tensor], *args: Any, **kwargs: Any) -> None:
        limit = limit_of(args, kwargs)
        # The norm of sharded gradients lies in parts on all ranks, and asking them is not ours to do.
        if limit is None or (isinstance(norm, torch.Tensor) and not readable(norm)):
            return
        where = self.scene.recorder.places.here()
        several = len(self.accounts) > 1
        holding = self.scene.actors.holding(parameters) if several else frozenset(self.accounts)
        known = norm if isinstance(norm, torch.Tensor) else None
        for actor in holding & self.accounts.keys():
            self.accounts[actor].clipped(known, limit, where)

    def before_update(self, optimizer: torch.optim.Optimizer, closure: bool) -> None:
        self._under_way.append(id(optimizer))
        account = self.account(optimizer)
        if account is None:
            return
        account.asked = True
        if len(self._under_way) == 1 and not closure and not _found_inf(optimizer):
            self._open(account, optimizer)

    def after_update(self, optimizer: torch.optim.Optimizer, closure: bool) -> None:
        if id(optimizer) in self._under_way:
            del self._under_way[self._under_way.index(id(optimizer)) :]
        account = self.account(optimizer)
        if self._under_way or account is None:
            return
        if closure:
            # The closure filled the gradients while the step ran; before it they were stale.
            self._open(account, optimizer)
        if _found_inf(optimizer):
            account.update_skipped(optimizer, self._amp_scale or 1.0)
        else:
            scaled = self.scene.recorder.within(SCALER_STEP)
            account.after_update(optimizer, self._amp_scale if scaled else None)
            if self.scene.listeners and account.index - account.skipped == _UNDER_WAY:
                self.scene.listeners.weighed(weigh(self.scene.actors))
        self.lines.update_done()

    def _open(self, account: Account, optimizer: torch.optim.Optimizer) -> None:
        if account.has_changed(optimizer):
            account.introduce(optimizer, named(parameters_of(optimizer), self.scene.actors))
            if account.actor in self.scene.actors.known:
                self.scene.listeners.introduced(self.scene.actors.known[account.actor], account.tensors)
        if account.stepped is None:
            account.stepped = self.scene.recorder.places.here()
        carried = getattr(optimizer, "grad_scale", None)
        account.before_update(optimizer, float(carried) if carried is not None else None)

    def before_scaler_step(
        self, scaler: GradScaler, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any
    ) -> None:
        account = self.account(optimizer)
        if account is not None:
            account.asked = False

    @torch.no_grad()
    def after_scaler_step(
        self, _: object, scaler: GradScaler, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any
    ) -> None:
        account = self.account(optimizer)
        if account is not None and not account.asked and scaler.is_enabled():
            account.update_skipped(optimizer, scaler.get_scale())

    def facts(self) -> Iterator[Training]:
        known = self.scene.actors.known
        active = [account for account in self.accounts.values() if account.index]
        for account in active:
            if account.actor in known:
                enough = self.scene.recorder.enough
                yield account.training(known[account.actor], alone=len(active) == 1, cut_short=enough)


def install(scene: Scene) -> None:
    statistics = Statistics(scene)
    recorder = scene.recorder

    def hook(observe: Callable[[torch.optim.Optimizer, bool], None]) -> Callable[..., None]:
        def call(optimizer: torch.optim.Optimizer, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
            if not torch.compiler.is_compiling():
                closure = any(map(callable, args[1:])) or kwargs.get("closure") is not None
                recorder.safely(observe, optimizer, closure)

        return call

    def packed(*args: Any, **kwargs: Any) -> None:
        statistics.inspector.packed = True
        scene.gaps["activations"] = "saved tensors are packed, as by activation checkpointing"

    scene.wrap(torch.optim.Optimizer, "__init__", scope=_SCOPE + " build", after=statistics.optimizer_built)
    scene.wrap(torch, "compile", scope=_SCOPE + " compile", before=statistics.model_compiled)
    scene.wrap(torch.autograd.graph.saved_tensors_hooks, "__enter__", scope=_SCOPE + " hooks", before=packed)
    scene.wrap(
        torch.autograd,
        "backward",
        scope=_SCOPE + " backward",
        before=statistics.about_to_send_back,
        after=statistics.sent_back,
    )
    zero = _SCOPE + " zero_grad"
    scene.wrap(torch.optim.Optimizer, "zero_grad", scope=zero, after=statistics.optimizer_cleared)
    scene.wrap(torch.nn.Module, "zero_grad", scope=zero, after=statistics.module_cleared)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        before = vars(clip_grad)[name]
        watched = observed(before, recorder, scope=_SCOPE + " clip", after=statistics.clipped)
        for module in (clip_grad, torch.nn.utils):
            scene.patches.replace(module, name, reading_once(before, watched))
    scene.wrap(GradScaler, "scale", scope=_SCOPE + " scale", after=statistics.scaled)
    scene.wrap(
        GradScaler,
        "step",
        scope=_SCOPE + " scaler step",
        before=statistics.before_scaler_step,
        after=statistics.after_scaler_step,
    )
    scene.patches.on_undo(register_optimizer_step_pre_hook(hook(statistics.before_update)).remove)
    scene.patches.on_undo(register_optimizer_step_post_hook(hook(statistics.after_update)).remove)
    scene.patches.on_undo(statistics.lines.stop)
    scene.facts.append(statistics.facts)


def _is_a_number(root: torch.Tensor) -> bool:
    return root.numel() == 1 and readable(root)


def _told(one: Measured, where: Location | None, index: int) -> Activation:
    sample = ActivationSample(index, one.dead, one.pinned, one.size)
    return Activation(one.kind, one.ordinal, where, one.hidden, one.units, (sample,))


def _found_inf(optimizer: torch.optim.Optimizer) -> bool:
    """What the scaler tells a fused optimizer, which then decides by itself to skip."""
    found = getattr(optimizer, "found_inf", None)
    return found is not None and bool(found)

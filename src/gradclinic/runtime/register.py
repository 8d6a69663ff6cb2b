"""The register of parameters: who owns, who holds, and what happened to each.

Filled at a few optimizer steps; nothing in it keeps a parameter alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.utils.weak import WeakIdKeyDictionary

from gradclinic.facts.census import Census, Group, Holder, Parameter, RunningNorm
from gradclinic.facts.cut import Cut
from gradclinic.facts.location import Location
from gradclinic.runtime.actors import Actors, parameters_of
from gradclinic.runtime.statistics import meter
from gradclinic.runtime.values import readable

PLAIN = (list, tuple, dict, set)
_DEEPEST = 2
_SMALL = 1000
"""Elements of a parameter that need not be part of a model: a coefficient, not a layer."""
_SAMPLE = 8


@dataclass
class Entry:
    parameter: weakref.ref[torch.Tensor]
    shape: tuple[int, ...]
    mark: tuple[object, ...]
    name: str = ""
    alias: str = ""
    """After the class of a module that has it, when that is no part of a model that was called."""
    holders: dict[str, None] = field(default_factory=dict)
    trainable: bool = True
    registered: bool = False
    abandoned: bool = False
    hidden_in: str = ""
    reached: bool = False
    looks: int = 0
    non_zero: bool = False
    ran: bool = False
    runs: float = 0.0
    training: bool = True
    loaded: bool = False
    changed: bool = False
    moved_frozen: bool = False
    built: Location | None = None
    owner: str = ""
    storage: int = 0
    model: str = ""
    copy_of: str = ""
    loose: bool = False
    cut: Cut | None = None


@dataclass
class NormEntry:
    name: str
    built: Location | None
    first: int
    """Batches it had seen when it was frozen, or when it was met."""
    frozen: bool
    mark: tuple[object, ...]
    """Of its weights at that time."""
    last: int = 0


class _Loose(NamedTuple):
    parameter: weakref.ref[torch.Tensor]
    name: str
    backward: Location
    again: bool
    """It was met more than once: a perturbed input is made anew for each batch, a coefficient is not."""


class Register:
    def __init__(self, actors: Actors) -> None:
        self.actors = actors
        self.entries: dict[int, Entry] = {}
        self.pending: dict[int, Entry] = {}
        """Those that no backward has reached yet."""
        self.groups: dict[str, tuple[Group, ...]] = {}
        self.steps: dict[str, int] = {}
        self.norms: dict[int, tuple[weakref.ref[nn.Module], NormEntry]] = {}
        # By identity: a module may define a hash of its own, as metrics do, of what it does not hold yet.
        self.ran: MutableMapping[nn.Module, int] = WeakIdKeyDictionary()
        self.built: MutableMapping[nn.Module, Location] = WeakIdKeyDictionary()
        self.loaded: MutableMapping[nn.Module, bool] = WeakIdKeyDictionary()
        self.hand_written = False
        self._loose: dict[int, _Loose] = {}
        """Parameters that a backward reached while no model and no optimizer was known to have them."""
        self.stepped: list[str] = []
        """Optimizers that finished a step since the last backward."""
        self.same_gradient: dict[tuple[str, str], int] = {}
        """Pairs of optimizers that stepped the same parameters with the same gradient, and how many."""

    def look(self) -> None:
        """Bring the register up to date with what models and optimizers hold now."""
        for actor, root in self._outermost():
            name = self.actors.known[actor].name
            for path, module in root.named_modules(prefix=name):
                self._module(actor, root, path, module)
            for place, path, module in _hidden_modules(root, name):
                for below, inner in module.named_modules(prefix=path):
                    self._module(actor, root, below, inner, hidden_in=place)
            for place, path, parameter in _hidden_parameters(root, name):
                self._parameter(path, parameter, hidden_in=place)
        for actor, optimizer in self.actors.optimizers():
            for parameter in parameters_of(optimizer):
                self._parameter("", parameter).holders.setdefault(actor)
        self._name_after_modules()
        self._adopt_loose()
        self._note_memory()
        self.note_gradients()

    def note_abandoned(self, actor: str) -> None:
        """An optimizer is about to step: which of its parameters are now in no model, having been in one."""
        owned = {id(parameter) for _, root in self._outermost() for parameter in root.parameters()}
        for address, entry in self.entries.items():
            if entry.registered and actor in entry.holders and entry.parameter() is not None:
                entry.abandoned = address not in owned

    def unknown(self, leaves: Collection[torch.Tensor]) -> list[torch.Tensor]:
        """Small parameters among them that nobody is known to have."""
        return [
            leaf
            for leaf in leaves
            if id(leaf) not in self.entries and isinstance(leaf, nn.Parameter) and leaf.numel() <= _SMALL
        ]

    def note_loose(self, parameter: torch.Tensor, name: str, backward: Location) -> None:
        before = self._loose.get(id(parameter))
        again = before is not None and before.parameter() is parameter
        self._loose[id(parameter)] = _Loose(weakref.ref(parameter), name, backward, again)

    def name_of(self, parameter: torch.Tensor) -> str:
        entry = self.entries.get(id(parameter))
        known = "" if entry is None else entry.name or entry.alias
        return known or f"a tensor of shape {tuple(parameter.shape)}"

    def _name_after_modules(self) -> None:
        unnamed = {a: e for a, e in self.entries.items() if not e.name and not e.alias and e.holders}
        for module in list(self.built) if unnamed else ():
            for path, part in module.named_modules():
                for name, parameter in part._parameters.items():
                    entry = unnamed.get(id(parameter))
                    if entry is not None and entry.parameter() is parameter:
                        alias = ".".join(filter(None, (type(module).__name__, path, name)))
                        entry.alias = max(entry.alias, alias, key=len)
                        entry.built = self.built.get(part)

    def _adopt_loose(self) -> None:
        """A coefficient or a weight of a loss may be a parameter of its own."""
        for one in self._loose.values():
            parameter = one.parameter()
            if parameter is not None and one.again and id(parameter) not in self.entries:
                entry = self._parameter("", parameter)
                entry.loose, entry.name, entry.built = True, one.name, one.backward

    def _note_memory(self) -> None:
        """Where each parameter lies now: `.data = ` moves it, and memory of one that is gone is reused."""
        taken: set[int] = set()
        gone: list[Entry] = []
        for entry in self.entries.values():
            parameter = entry.parameter()
            if parameter is None:
                gone.append(entry)
            else:
                entry.storage = parameter.data_ptr() if parameter.numel() and readable(parameter) else 0
                taken.add(entry.storage)
        for entry in gone:
            if entry.storage in taken:
                entry.storage = 0

    def note_gradients(self) -> None:
        """Which of the parameters that had none have a gradient now."""
        for address, entry in list(self.pending.items()):
            parameter = entry.parameter()
            if parameter is None or parameter.grad is not None:
                entry.reached = entry.reached or parameter is not None
                del self.pending[address]

    def look_for_zeros(self) -> None:
        """Count the gradients that are exactly zero; one that ever was not is looked at no more."""
        for entry in self.entries.values():
            if entry.non_zero:
                continue
            parameter = entry.parameter()
            gradient = None if parameter is None else parameter.grad
            if gradient is None or gradient.is_sparse or not readable(gradient):
                continue
            entry.looks += 1
            entry.non_zero = bool(gradient.any())

    def describe(self, actor: str, optimizer: torch.optim.Optimizer) -> None:
        if actor not in self.groups:
            self.groups[actor] = tuple(_group(one, self) for one in optimizer.param_groups)

    def note_second_step(self, actor: str, earlier: Collection[str]) -> None:
        """`earlier` had stepped when this step began; no backward since means the same gradients."""
        for other in self.stepped:
            if other != actor and other in earlier:
                shared = sum(1 for e in self.entries.values() if actor in e.holders and other in e.holders)
                if shared:
                    self.same_gradient[other, actor] = shared

    def census(self, *, complete: bool) -> Census:
        total = sum(self.steps.values())
        return Census(
            tuple(_frozen(entry, self.steps, total) for entry in self.entries.values()),
            tuple(
                Holder(id, known.name, known.type, known.built, self.steps[id], self.groups.get(id, ()))
                for id in self.steps
                if (known := self.actors.known.get(id)) is not None
            ),
            tuple(
                RunningNorm(one.name, one.frozen, max(0, one.last - one.first), one.built)
                for _, one in self.norms.values()
            ),
            tuple((*pair, shared) for pair, shared in self.same_gradient.items()),
            self.hand_written,
            complete,
        )

    def _outermost(self) -> Iterator[tuple[str, nn.Module]]:
        """Models that are not part of another."""
        models = list(self.actors.models())
        inner = {id(part) for _, model in models for part in model.modules() if part is not model}
        return ((actor, model) for actor, model in models if id(model) not in inner)

    def _module(self, actor: str, root: nn.Module, path: str, module: nn.Module, hidden_in: str = "") -> None:
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            entry = self._parameter(f"{path}.{name}", parameter, hidden_in)
            entry.model = actor
            entry.owner = type(module).__name__
            entry.built = self.built.get(module)
            entry.ran = entry.ran or module in self.ran
            entry.runs = self.ran.get(module, 0) / max(self.ran.get(root, 0), 1)
            entry.training = module.training
            entry.loaded = entry.loaded or module in self.loaded
        if isinstance(module, _NormBase) and module.num_batches_tracked is not None:
            self._norm(path, module)

    def _norm(self, path: str, module: Any) -> None:
        seen = int(module.num_batches_tracked)
        own = [parameter for parameter in (module.weight, module.bias) if parameter is not None]
        frozen = bool(own) and not any(parameter.requires_grad for parameter in own)
        mark = tuple(_mark(parameter) for parameter in own)
        known = self.norms.get(id(module))
        if known is None or known[0]() is not module:
            entry = NormEntry(path, self.built.get(module), seen, frozen, mark)
            self.norms[id(module)] = (weakref.ref(module), entry)
        else:
            entry = known[1]
        if frozen and not entry.frozen:
            entry.first, entry.mark = seen, mark
        entry.last = seen
        # Weights that move without a gradient are an average of others, and its statistics may move too.
        entry.frozen = frozen and mark == entry.mark

    def _parameter(self, name: str, parameter: torch.Tensor, hidden_in: str = "") -> Entry:
        entry = self.entries.get(id(parameter))
        if entry is None or entry.parameter() is not parameter:
            entry = Entry(weakref.ref(parameter), tuple(parameter.shape), _mark(parameter))
            self.entries[id(parameter)] = self.pending[id(parameter)] = entry
        entry.trainable = parameter.requires_grad
        entry.changed = entry.changed or _mark(parameter) != entry.mark
        if name and not entry.name:
            entry.name = name
            entry.hidden_in = hidden_in
        entry.registered = entry.registered or bool(name and not hidden_in)
        return entry


def _mark(parameter: torch.Tensor) -> tuple[object, ...]:
    """Differs once the values do: writes through `.data` leave the version alone, hence the sample."""
    if not readable(parameter):
        return (parameter._version,)
    return (parameter._version, *parameter.detach().flatten()[:_SAMPLE].tolist())


def _frozen(entry: Entry, steps: dict[str, int], total: int) -> Parameter:
    return Parameter(
        name=entry.name or entry.alias or f"a tensor of shape {entry.shape}",
        shape=entry.shape,
        trainable=entry.trainable,
        holders=tuple(entry.holders),
        updates=sum(steps.get(holder, 0) for holder in entry.holders) if entry.holders else total,
        registered=entry.registered and not entry.abandoned,
        hidden_in="" if entry.registered else entry.hidden_in,
        reached=entry.reached and not entry.abandoned,
        always_zero=0 if entry.non_zero else entry.looks,
        ran=entry.ran,
        runs=entry.runs,
        training=entry.training,
        loaded=entry.loaded,
        changed=entry.changed,
        moved_frozen=entry.moved_frozen,
        built=entry.built,
        owner=entry.owner,
        storage=entry.storage,
        model=entry.model,
        copy_of=entry.copy_of,
        loose=entry.loose and not entry.registered,
        cut=entry.cut,
    )


def _group(group: dict[str, Any], register: Register) -> Group:
    parameters = group["params"]
    dtype = parameters[0].dtype if parameters else torch.float32
    eps = group.get("eps")
    known = eps if isinstance(eps, float) else None
    return Group(
        parameters=tuple(register.name_of(parameter) for parameter in parameters),
        lr=float(group.get("lr") or 0.0),
        weight_decay=float(group.get("weight_decay") or 0.0),
        eps=known,
        eps_in_state=None if known is None else torch.tensor(known, dtype=dtype).item(),
        dtype=str(dtype).removeprefix("torch."),
        duplicates=len(parameters) - len({id(parameter) for parameter in parameters}),
        bytes=sum(meter.local(parameter).nbytes for parameter in parameters),
        at_once=_at_once(group),
    )


def _at_once(group: dict[str, Any]) -> bool:
    chosen, fused = group.get("foreach", False), group.get("fused")
    if chosen is None and not fused:
        return all(parameter.is_cuda for parameter in group["params"])  # what torch itself chooses there
    return bool(chosen)


def _hidden_modules(root: nn.Module, name: str) -> Iterator[tuple[str, str, nn.Module]]:
    known = {id(module) for module in root.modules()}
    for place, path, thing in _in_plain_containers(root, name):
        if isinstance(thing, nn.Module) and id(thing) not in known:
            yield place, path, thing


def _hidden_parameters(root: nn.Module, name: str) -> Iterator[tuple[str, str, torch.Tensor]]:
    known = {id(parameter) for parameter in root.parameters()}
    for place, path, thing in _in_plain_containers(root, name):
        if isinstance(thing, nn.Parameter) and id(thing) not in known:
            yield place, path, thing


def _in_plain_containers(root: nn.Module, name: str) -> Iterator[tuple[str, str, Any]]:
    for path, module in root.named_modules(prefix=name):
        for attribute, value in vars(module).items():
            if type(value) in PLAIN and not attribute.startswith("_"):
                place = f"{path}.{attribute} ({type(value).__name__})"
                for inner, thing in _items(value, f"{path}.{attribute}", _DEEPEST):
                    yield place, inner, thing


def _items(container: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    pairs = container.items() if isinstance(container, dict) else enumerate(container)
    for key, value in pairs:
        inner = f"{path}[{key!r}]"
        if type(value) in PLAIN and depth > 1:
            yield from _items(value, inner, depth - 1)
        else:
            yield inner, value

"""A case: a model, a batch and a loss, put together so that experiments can be made on them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from gradclinic.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module, Parameter
    from torch.optim import Optimizer

    Loss = Callable[[Any, Any], Tensor | Mapping[str, Tensor]]
    Term = Callable[[Any, Any], Tensor]
    Variant = Callable[[Module], Callable[..., Any]]

WHOLE = "loss"
"""The name of the only term when the loss is one number."""


@dataclass
class Case:
    """What an experiment needs to know of a training set-up.

    Give either `loss(outputs, batch)`, which returns one number or a mapping of named terms, or
    `terms`, one function for each term, with `weights` where they are not 1. The rest is optional.
    """

    model: Module
    batch: Any = None
    loss: Loss | None = None
    _: KW_ONLY
    terms: Mapping[str, Term] | None = None
    weights: Mapping[str, float] | None = None
    forward: Callable[[Any, Any], Any] | None = None
    """`forward(model, batch) -> outputs`. By default a tuple's first item or a mapping's entries
    are the model's arguments, and anything else is its only one."""
    optimizer: Callable[[Iterable[Parameter]], Optimizer] | Optimizer | None = None
    loader: Iterable[Any] | Callable[[], Iterable[Any]] | None = None
    variants: Mapping[str, Variant] | None = None
    """Other ways to run the same model: `{"ours": lambda model: our_compile(model)}`. What the
    function returns is called in place of the model; a module with weights of its own is compared by
    the names of its parameters."""
    metrics: Mapping[str, Callable[[Any, Any], Any]] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        _check_types(self)
        _check_parameters(self.model)
        if self.batch is None and self.loader is not None:
            self.batch = next(self.batches(), None)
        if self.batch is None:
            raise UsageError("the case has no batch; give batch=… or a loader that yields one")

    def parameters(self) -> dict[str, Parameter]:
        """The trainable parameters, by name."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def outputs(self, model: Callable[..., Any] | None = None, batch: Any = None) -> Any:
        """One forward of `model` (or what stands in for it) on `batch`; both default to the case's own."""
        model = self.model if model is None else model
        batch = self.batch if batch is None else batch
        if self.forward is not None:
            return self.forward(model, batch)
        if isinstance(batch, Mapping):
            return model(**batch)
        return model(batch[0]) if isinstance(batch, (tuple, list)) else model(batch)

    def evaluate(self, model: Callable[..., Any] | None = None, batch: Any = None) -> Evaluation:
        """One forward and every term of the loss, checked to be scalars."""
        batch = self.batch if batch is None else batch
        outputs = self.outputs(model, batch)
        return Evaluation(outputs, self.score(outputs, batch), self.weights or {})

    def score(self, outputs: Any, batch: Any) -> dict[str, Tensor]:
        """The unweighted terms of the loss, each a scalar tensor."""
        if self.terms is not None:
            named = {name: term(outputs, batch) for name, term in self.terms.items()}
        else:
            assert self.loss is not None
            value = self.loss(outputs, batch)
            named = dict(value) if isinstance(value, Mapping) else {WHOLE: value}
        return {name: _scalar(name, value) for name, value in named.items()}

    def make_optimizer(self, model: Module | None = None) -> Optimizer:
        """A fresh optimizer over `model`, a copy of the case's own: the user's object stays as it is."""
        from torch.optim import AdamW, Optimizer

        model = self.model if model is None else model
        if isinstance(self.optimizer, Optimizer):
            theirs = zip(self.model.parameters(), model.parameters(), strict=True)
            return copy.deepcopy(self.optimizer, {id(own): other for own, other in theirs})
        trainable = [p for p in model.parameters() if p.requires_grad]
        if self.optimizer is None:
            return AdamW(trainable, lr=1e-3)
        made: object = self.optimizer(trainable)
        if not isinstance(made, Optimizer):
            raise UsageError(
                f"optimizer(params) of the case returned {_named(made)}, expected a torch optimizer"
            )
        return made

    def batches(self) -> Iterator[Any]:
        """One pass over the loader, or the single batch where there is none."""
        if self.loader is None:
            return iter((self.batch,))
        if callable(self.loader):
            return iter(self.loader())
        return iter(self.loader)


@dataclass(frozen=True)
class Evaluation:
    """What one forward gave."""

    outputs: Any
    terms: dict[str, Tensor]
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def weighted(self) -> dict[str, Tensor]:
        return {name: term * self.weights.get(name, 1.0) for name, term in self.terms.items()}

    @property
    def total(self) -> Tensor:
        """The objective: what a training loop would call backward on."""
        parts = list(self.terms.values() if not self.weights else self.weighted.values())
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total


def _check_types(case: Case) -> None:
    from torch.nn import Module

    if not isinstance(case.model, Module):
        raise UsageError(f"the case's model is {_named(case.model)}, expected a torch.nn.Module")
    if (case.loss is None) == (case.terms is None):
        given = "neither" if case.loss is None else "both"
        raise UsageError(f"a case needs either loss or terms; {given} was given")
    for field_name in ("loss", "forward"):
        value = getattr(case, field_name)
        if value is not None and not callable(value):
            raise UsageError(f"the case's {field_name} is {_named(value)}, expected a function")
    for field_name in ("terms", "variants", "metrics"):
        value = getattr(case, field_name)
        if value is not None and not (isinstance(value, Mapping) and all(map(callable, value.values()))):
            raise UsageError(f"the case's {field_name} must map names to functions, not be {_named(value)}")
    if case.terms is not None and not case.terms:
        raise UsageError("the case's terms are empty; give at least one")
    unknown = set(case.weights or {}) - set(case.terms or {}) if case.terms is not None else set()
    if unknown:
        raise UsageError(f"weights name {', '.join(sorted(unknown))}, which terms does not have")


def _check_parameters(model: Module) -> None:
    parameters = list(model.named_parameters())
    kind = type(model).__name__
    if not parameters:
        raise UsageError(f"{kind} has no parameters, so there is nothing to train")
    if not any(p.requires_grad for _, p in parameters):
        raise UsageError(
            f"all {len(parameters)} parameters of {kind} have requires_grad=False: nothing trains"
        )
    places: dict[str, str] = {}
    for name, parameter in parameters:
        places.setdefault(str(parameter.device), name)
    if len(places) > 1:
        where = ", ".join(f"{name} on {device}" for device, name in places.items())
        raise UsageError(
            f"the parameters of {kind} live on {len(places)} devices ({where}); move them to one"
        )


def _scalar(name: str, value: Any) -> Tensor:
    from torch import Tensor

    if not isinstance(value, Tensor):
        raise UsageError(f"the loss term {name!r} is {_named(value)}, expected a scalar tensor")
    if value.numel() != 1:
        shape = tuple(value.shape)
        raise UsageError(
            f"the loss term {name!r} has shape {shape}, expected a scalar; reduce it, e.g. .mean()"
        )
    return value.reshape(())


def _named(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"

"""`verified_compile`: a compiled function that was proven against eager before anyone may call it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradclinic.compile.gradients import tolerance_for
from gradclinic.compile.graph_key import graph_key
from gradclinic.compile.graphs import Backend, Compiled, compiled_graph, record
from gradclinic.compile.lifted import Lifted
from gradclinic.compile.lifting import leaves
from gradclinic.compile.proof import NotEquivalent, Terms, prove, unchanged
from gradclinic.compile.tracing import no_donated_buffers
from gradclinic.facts.variants import VariantReport


def verified_compile(
    target: Callable[..., Any],
    example: Any,
    *,
    terms: Terms | None = None,
    backend: Backend = "inductor",
    dynamic: bool = False,
    tolerance: float | None = None,
) -> VerifiedFunction:
    """Compile a module, a method or a function, and prove its gradients before handing it out.

    `example` is what it will be called with: a tuple of arguments, a mapping of keyword arguments,
    or a single argument. `terms` maps names to functions of the outputs that give a scalar; without
    them every output is projected on fixed random numbers, which no wrong gradient survives.
    Inner calls of `autograd.grad` are part of the graph, so losses on forces train as in eager.

    With `dynamic` one graph serves all sizes. A call with sizes, dtypes or modes that were not
    proven yet is proven first. Raises `NotEquivalent`, with the table, when a proof fails.
    """
    args, kwargs = as_arguments(example)
    made = VerifiedFunction(Lifted(target), terms, backend, dynamic, tolerance)
    made.prepare(args, kwargs)
    return made


def as_arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example, Mapping):
        return (), dict(example)
    return (tuple(example), {}) if isinstance(example, (tuple, list)) else ((example,), {})


class VerifiedFunction:
    """Callable like what it was made from; see `verified_compile`."""

    def __init__(
        self,
        lifted: Lifted,
        terms: Terms | None,
        backend: Backend,
        dynamic: bool,
        tolerance: float | None,
        pool: dict[str, Compiled] | None = None,
    ) -> None:
        self._lifted = lifted
        self._terms = terms
        self._backend = backend
        self._dynamic = dynamic
        self._tolerance = tolerance
        self._pool = pool
        self._proven: dict[object, Compiled] = {}
        self._symbolic: dict[object, Compiled] = {}
        self.proofs: list[VariantReport] = []
        """What was compared, one report for each build of arguments."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key = self._signature(args, kwargs)
        compiled = self._proven.get(key)
        if compiled is None:
            compiled = self.prepare(args, kwargs)
        return compiled(self._lifted, args, kwargs)

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compiled:
        """Trace, compile and prove for arguments of this build; done by itself on the first call."""
        key = self._signature(args, kwargs)
        if key in self._proven:
            return self._proven[key]
        general = self._symbolic.get(self._modes(args, kwargs))
        if general is not None and self._serves(general, args, kwargs):
            self._proven[key] = general
            return general
        symbolic = self._dynamic and general is None
        compiled = self._compile(args, kwargs, symbolic)
        self._prove(compiled, args, kwargs)
        if symbolic:
            self._symbolic[self._modes(args, kwargs)] = compiled
        self._proven[key] = compiled
        return compiled

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any], symbolic: bool) -> Compiled:
        with unchanged(self._lifted):
            compiled = record(self._lifted, args, kwargs, symbolic)
        key = graph_key(compiled.graph) if self._pool is not None else ""
        if self._pool is not None and key in self._pool:
            return replace(compiled, run=self._pool[key].run)
        compiled = replace(compiled, run=compiled_graph(compiled.graph, self._backend, symbolic))
        if self._pool is not None:
            self._pool[key] = compiled
        return compiled

    def _prove(self, compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tolerance = self._tolerance
        if tolerance is None:
            tolerance = tolerance_for([*self._lifted.state(), *self._lifted.inputs(args, kwargs)])
        run = functools.partial(compiled, self._lifted, args, kwargs)
        # The graph is compiled by its first run: in here, where each term has its own backward.
        with no_donated_buffers():
            self.proofs.append(prove(self._lifted, run, args, kwargs, self._terms, tolerance))

    def _serves(self, general: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the graph for all sizes is right for these; if not, they get their own."""
        try:
            self._prove(general, args, kwargs)
        except NotEquivalent:
            return False
        return True

    def _signature(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        return (self._modes(args, kwargs), tuple(_kind(leaf) for _, leaf in leaves((args, kwargs))))

    def _modes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        fixed = tuple(repr(leaf) for _, leaf in leaves((args, kwargs)) if not isinstance(leaf, Tensor))
        return (self._lifted.modes(), torch.is_grad_enabled(), fixed)


def _kind(leaf: Any) -> object:
    if isinstance(leaf, Tensor):
        return (leaf.shape, leaf.dtype, leaf.device, leaf.requires_grad)
    return repr(leaf)

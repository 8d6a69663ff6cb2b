"""Activation checkpointing that keeps names, random streams and gradients as they are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint

from gradclinic.train.errors import TrainStepError


def checkpoint_activations(model: nn.Module, modules: Iterable[str]) -> None:
    """Recompute the named modules in backward instead of keeping what they computed.

    The non-reentrant form, so that no gradient is cut off when the module's input needs none, and
    dropout draws in the second forward what it drew in the first. The state_dict does not change.
    """
    named = dict(model.named_modules())
    wanted = list(modules)
    for name in wanted:
        if name not in named:
            raise TrainStepError(
                f"checkpoint_activations: no module is called {name!r}; names come from model.named_modules()"
            )
    for name in wanted:
        module = named[name]
        module.forward = partial(checkpoint, module.forward, use_reentrant=False)

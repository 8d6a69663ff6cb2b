"""Classes of a project that are built on losses and chains of torch."""

from __future__ import annotations

from gradclinic.static.flow.torch_calls import chain_of
from gradclinic.static.flow.torch_names import LOSSES
from gradclinic.static.flow.values import Chain, Loss
from gradclinic.static.values import Instance
from gradclinic.static.walk import Arguments

_BELOW = "<below>"
"""What an object holds by that its class is built on."""


def build_below(instance: Instance, args: Arguments) -> None:
    """What torch makes of it: `super().__init__(nn.Linear(4, 3), nn.Softmax(1))`."""
    name = _base(instance)
    if name in LOSSES:
        instance.attrs[_BELOW] = Loss(LOSSES[name], dict(args.keywords))
    elif name == "Sequential":
        instance.attrs[_BELOW] = chain_of(args)


def below(instance: Instance) -> Loss | Chain | None:
    """What runs where the class has no forward of its own, or its forward asks for it."""
    found = instance.attrs.get(_BELOW)
    if isinstance(found, Chain):
        return found if found.parts else None  # Its layers may be attributes, in the order they were set.
    return found if isinstance(found, Loss) else None


def add_below(instance: Instance, args: Arguments) -> None:
    """`self.add_module("last", nn.Softmax(1))`"""
    chain = instance.attrs.get(_BELOW)
    if isinstance(chain, Chain) and args.positional:
        chain.parts.append(args.positional[-1])


def _base(instance: Instance) -> str:
    names = [name for name in instance.cls.outside_bases() if name.startswith("torch.nn.")]
    return names[0].rpartition(".")[2] if names else ""

"""Parameter groups: no decay for norms and biases, and rates that shrink towards the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from gradclinic.train.errors import TrainStepError
from gradclinic.train.layout import in_module, unwrapped


def parameter_groups(
    model: nn.Module,
    *,
    lr: float,
    weight_decay: float = 0.0,
    layers: Sequence[str] = (),
    layer_decay: float = 1.0,
) -> list[dict[str, Any]]:
    """Groups for any torch optimizer: `AdamW(parameter_groups(model, lr=3e-4, weight_decay=0.1))`.

    Tensors of fewer than two dimensions (biases, norm scales) are not decayed. `layers` names
    modules from input to output; each trains at `layer_decay` times the rate of the one after it,
    the last of them and all that is not named at `lr`. Frozen parameters are left out.
    """
    parameters = {name: p for name, p in unwrapped(model).named_parameters() if p.requires_grad}
    for layer in layers:
        if not any(in_module(name, layer) for name in parameters):
            raise TrainStepError(
                f"parameter_groups(layers=…): {layer!r} matches no trainable parameter; "
                "expected the name of a module"
            )
    groups: dict[tuple[float, float], list[Tensor]] = {}
    for name, parameter in parameters.items():
        depth = next((place for place, layer in enumerate(layers) if in_module(name, layer)), len(layers) - 1)
        rate = lr * layer_decay ** (len(layers) - 1 - depth)
        decay = weight_decay if parameter.dim() >= 2 else 0.0
        groups.setdefault((rate, decay), []).append(parameter)
    return [
        {"params": members, "lr": rate, "weight_decay": decay} for (rate, decay), members in groups.items()
    ]

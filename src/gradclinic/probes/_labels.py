"""Labels a term asks for and the batch does not have: made up, since flow does not depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gradclinic.compile.lifting import tensors
from gradclinic.errors import UsageError


class WithLabels(dict[str, Any]):
    """A mapping batch that answers for missing labels with noise of the output's shape."""

    def __init__(self, batch: Mapping[str, Any], outputs: Any) -> None:
        super().__init__(batch)
        self._outputs = tensors(outputs)
        self.made_up: list[str] = []

    def __missing__(self, key: str) -> Tensor:
        like = self._like(key)
        if like is None:
            raise UsageError(
                f"a term asks for the label {key!r}, which the batch does not have, and no output is called "
                f"so that its shape could be taken; add the label to the batch"
            )
        generator = torch.Generator().manual_seed(len(self.made_up))
        noise = torch.randn(like.shape, generator=generator, dtype=torch.float64)
        self[key] = noise.to(like.device, like.dtype)
        self.made_up.append(key)
        return self[key]  # type: ignore[no-any-return]

    def _like(self, key: str) -> Tensor | None:
        if key in self._outputs:
            return self._outputs[key]
        named = [t for name, t in self._outputs.items() if name and (name in key or key in name)]
        return named[0] if len(named) == 1 else None


def labelled(batch: Any, outputs: Any) -> Any:
    return WithLabels(batch, outputs) if isinstance(batch, Mapping) else batch


def made_up(batch: Any) -> tuple[str, ...]:
    return tuple(batch.made_up) if isinstance(batch, WithLabels) else ()

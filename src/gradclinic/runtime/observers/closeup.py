"""The first steps of each stage closely: how the objective was made, and where it left the graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from gradclinic.runtime.closeup.mode import Closeup
from gradclinic.runtime.closeup.notebook import Notebook
from gradclinic.runtime.patching import unseen
from gradclinic.runtime.scene import Scene

YOUNG = 6
"""Steps that are looked at closely, at first and after an optimizer was built for another stage."""
_MOST_BACKWARDS = 60
_MOST_STAGES = 4
"""A program that builds an optimizer for every task or fold trains them all in one way."""
_CHOOSES_BY_MODE = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)
"""In eval mode these take a faster path with other roundings, unless a mode is active."""


def install(scene: Scene) -> None:
    recorder = scene.recorder
    notebook = Notebook(scene)

    def note(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        notebook.note(function, args, kwargs, result)
        for tell in scene.functions:
            tell(function, args, kwargs, result)

    closeup = Closeup(recorder, note)
    backwards, until, stages, traced = 0, YOUNG, 1, False

    def optimizer_built(*args: Any, **kwargs: Any) -> None:
        nonlocal backwards, until, stages
        if not closeup.over:
            closeup.begin()
        elif stages < _MOST_STAGES and not (traced or recorder.full):
            backwards, until, stages = 0, recorder.steps + YOUNG, stages + 1
            notebook.breaks.begin_stage()
            closeup.reopen()

    def before_backward(tensors: torch.Tensor | Sequence[torch.Tensor], *args: Any, **kwargs: Any) -> None:
        nonlocal backwards
        roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        if closeup.over and not any(root.grad_fn is None for root in roots):
            return
        backwards += 1
        for root in roots:
            notebook.objective(root)
        if backwards >= _MOST_BACKWARDS:
            closeup.end()

    def stepped(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not closeup.over and not torch.compiler.is_compiling():
            recorder.safely(after_step)

    def after_step() -> None:
        notebook.breaks.forget_numbers()
        closeup.begin()
        if recorder.steps >= until:
            closeup.end()

    def compiled(*args: Any, **kwargs: Any) -> None:
        nonlocal traced
        traced = True
        closeup.end()
        scene.gaps.setdefault("loss and its input", "the model is compiled or traced")

    def from_numpy(result: torch.Tensor, *args: Any) -> None:
        if closeup.active:
            notebook.imported(result)

    scene.wrap(torch.optim.Optimizer, "__init__", scope="closeup build", after=optimizer_built)
    scene.wrap(torch.autograd, "backward", scope="closeup backward", before=before_backward)
    scene.wrap(torch, "from_numpy", scope="from_numpy", after=from_numpy)
    scene.wrap(torch, "compile", scope="compile", before=compiled)
    scene.wrap(torch.jit, "trace", scope="trace", before=compiled)
    for kind in _CHOOSES_BY_MODE:
        scene.patches.replace(kind, "forward", _without_mode_in_eval(kind.forward, closeup))
    scene.patches.on_undo(closeup.end)
    scene.patches.on_undo(register_optimizer_step_post_hook(stepped).remove)
    scene.facts.insert(0, lambda: list(notebook.facts()))


def _without_mode_in_eval(original: Any, closeup: Closeup) -> Any:
    @wraps(original)
    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if self.training or closeup.over or torch.compiler.is_compiling():
            return original(self, *args, **kwargs)
        with closeup.lifted():
            return original(self, *args, **kwargs)

    return unseen(forward)

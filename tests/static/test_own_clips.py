"""A project's own clip, written out, held as a function or behind a method, told where it is asked for."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, told

BY_NORM = """
def clip_grads_(parameters, max_norm):
    parameters = list(filter(lambda p: p.grad is not None, parameters))
    total = sum(p.grad.data.norm(2) ** 2 for p in parameters) ** 0.5
    if max_norm < total:
        for p in parameters:
            p.grad.detach().mul_(max_norm / total)
    return total
"""
OF_AN_OPTIMIZER = """
def gradient_clipping(optimizer, limit):
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.grad is not None:
                p.grad.data.mul_(limit / (p.grad.data.norm() + 1e-6))
"""
LOOP = """
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    {before}
    optimizer.step()
    {after}
"""
SCALED = """
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    {unscale}
    {clip}
    scaler.step(optimizer)
    scaler.update()
"""
CLIPS = [
    (BY_NORM, "clip_grads_(model.parameters(), 1.0)"),
    (OF_AN_OPTIMIZER, "gradient_clipping(optimizer, 1.0)"),
    ("", "clip_grad_fn(model.parameters())"),
]


def line_of(source: str, text: str) -> int:
    return source.splitlines().index(text) + 1


@pytest.mark.parametrize(("defined", "call"), CLIPS)
def test_a_clip_after_the_step_is_told_at_its_call(defined: str, call: str) -> None:
    source = TORCH + defined + LOOP.format(before="pass", after=call)
    assert told(source) == {("GC109", line_of(source, f"    {call}"))}
    assert told(TORCH + defined + LOOP.format(before=call, after="pass")) == set()


@pytest.mark.parametrize(("defined", "call"), CLIPS)
def test_a_clip_of_scaled_gradients_is_told_at_its_call(defined: str, call: str) -> None:
    source = TORCH + defined + SCALED.format(unscale="pass", clip=call)
    assert told(source) == {("GC501", line_of(source, f"    {call}"))}
    assert told(TORCH + defined + SCALED.format(unscale="scaler.unscale_(optimizer)", clip=call)) == set()


def test_a_clip_may_unscale_by_itself() -> None:
    defined = BY_NORM.replace("    total = sum", "    scaler.unscale_(optimizer)\n    total = sum")
    call = "clip_grads_(model.parameters(), 1.0)"
    assert told(TORCH + defined + SCALED.format(unscale="pass", clip=call)) == set()


def test_what_computes_a_factor_clips_nothing() -> None:
    """The word language model of old multiplied the rate by it."""
    factor = """
def clip_gradient(model, limit):
    total = sum(p.grad.data.norm() ** 2 for p in model.parameters()) ** 0.5
    return min(1, limit / (total + 1e-6))
"""
    printed = "print(clip_gradient(model, 0.25))"
    assert told(TORCH + factor + LOOP.format(before="pass", after=printed)) == set()


def test_a_method_that_clips_by_hand() -> None:
    source = (
        TORCH
        + """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def clip_gradients(self):
        total = sum(p.grad.data.norm() ** 2 for p in self.model.parameters()) ** 0.5
        for p in self.model.parameters():
            p.grad.data.mul_(1.0 / max(total, 1.0))

    def run(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            F.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
            self.clip_gradients()

Trainer(nn.Linear(3, 1)).run(loader)
"""
    )
    assert told(source) == {("GC109", line_of(source, "            self.clip_gradients()"))}

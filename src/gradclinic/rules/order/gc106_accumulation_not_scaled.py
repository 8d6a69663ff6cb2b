"""Several backwards make one step and the loss is not divided by their number.

## What it finds
An accumulation window of K micro-batches whose losses are means, passed to `backward()` whole, or
divided by the count of micro-batches so far: by 1, by 2, and only the last of them by K.

## Why it hurts
Gradients add up, so the update is K times that of the mean over the window: the learning rate is
K times what the configuration says, any clip threshold K times tighter, and changing K changes
the training.

## What to do
Divide each micro-batch's loss by the window's length:

    loss = criterion(model(x), y) / accumulate
    loss.backward()

For token losses divide the summed loss by the number of valid tokens of the whole window.

## Not the fix
Lowering the learning rate by K: clipping, weight decay and every later change of K stay wrong.

## Known limits
Adam and its kin cancel a constant factor, so for them this is a warning: the factor still shifts
`eps`, clipping and logged norms. Summed losses, gradients divided by hand and losses from
functions that cannot be followed are not judged, nor are programs whose rate is made for the size of
one batch, as `lr * batch_size / 256`: the sum over a window is what such a rate is for.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import ACCUMULATION, EventKind, Source, Tape, Update, accumulated, updates
from gradclinic.facts.samples import Accumulation
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC106",
    "accumulation-not-scaled",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME, Source.PROBE),
    topic="accumulation",
    needs=(ACCUMULATION,),
    explains=("GC601", "GC603", "GC307", "GC604"),
)

BAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
accumulate = 4
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""

GOOD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
accumulate = 4
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""

GOOD_SEVERAL_LOSSES_OF_ONE_BATCH = """
import torch
from torch import nn

trunk = nn.Linear(4, 8)
heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
optimizer = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    hidden = trunk(x).tanh()
    losses = [nn.functional.mse_loss(head(hidden), x[:, i : i + 1]) for i, head in enumerate(heads)]
    for loss in losses:
        loss.backward(retain_graph=True)
    optimizer.step()
"""

GOOD_GRADIENTS_DIVIDED_BY_HAND = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
accumulate = 4
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            for p in model.parameters():
                p.grad.div_(accumulate)
            optimizer.step()
            optimizer.zero_grad()
"""

SCALE_INVARIANT = ("adam", "adamw", "nadam", "radam", "adamax", "rmsprop", "adafactor", "rprop", "lion")


@rule.check
def summed_not_averaged(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        windows = [update for update in updates(tape, optimizer) if _unscaled(tape, update)]
        if len(windows) < 2:
            continue
        window = windows[0]
        invariant = tape.actors[optimizer].type.rpartition(".")[2].lower() in SCALE_INVARIANT
        length = len(window.micro_batches()) if tape.source is Source.RUNTIME else "K"
        counted = window.backwards[0].attrs.get("divided_by")
        wrong = f"losses are divided by {counted}, the count so far"
        yield rule.finding(
            f"{length} backwards make one {tape.name(optimizer)}.step(), and "
            + (wrong if counted else f"no loss is divided by {length}"),
            window.backwards[0],
            evidence={
                "order seen": order_seen(window.events, EventKind.BACKWARD, EventKind.STEP),
                **(_uneven(length) if counted else _too_large(length, invariant=invariant)),
            },
            fix=f"divide the loss by the window's length ({length}) before backward()",
            confidence=0.9 if any(e.kind is EventKind.BATCH for e in window.events) else 0.7,
            severity=Severity.WARNING if invariant and not counted else None,
            subject=optimizer,
        )


@rule.check
def measured_as_a_sum(seen: Accumulation) -> Iterator[Finding]:
    if seen.coupled or abs(seen.scale - seen.parts) > 0.02 * seen.parts:
        return
    yield rule.finding(
        f"accumulating {seen.parts} micro-batches gives {seen.scale:.3g} times the whole batch's gradient",
        seen.where,
        evidence={
            "weights used": ", ".join(f"{weight:.3g}" for weight in seen.used),
            "weights of the whole batch": ", ".join(f"{weight:.3g}" for weight in seen.weights),
        },
        fix=f"divide the loss by the window's length ({seen.parts}) before backward()",
        confidence=0.97,
    )


def _uneven(length: int | str) -> dict[str, str]:
    return {"weights used": f"1, 1/2, ... 1/{length}: the first micro-batch counts {length} times the last"}


def _too_large(length: int | str, *, invariant: bool) -> dict[str, str]:
    cancelled = ", mostly cancelled by this optimizer" if invariant else ""
    return {"effective learning rate": f"{length} times the configured one{cancelled}"}


def _unscaled(tape: Tape, update: Update) -> bool:
    backwards = accumulated(tape, update)
    touched = update.opaque or update.of_kind(EventKind.GRAD_WRITE)
    return bool(backwards) and not touched and all(event.attrs.get("scaled") is False for event in backwards)

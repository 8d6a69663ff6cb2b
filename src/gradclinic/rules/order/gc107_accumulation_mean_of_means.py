"""Means over micro-batches of different sizes are averaged as if they were equal.

## What it finds
An accumulation window whose micro-batch losses are means over different numbers of valid
elements, each given the same weight.

## Why it hurts
A token in a short micro-batch counts more than one in a long one. The gradient is not that of
the mean over the window, and the difference does not average out when length and difficulty go
together.

## What to do
Sum the losses of the window's elements and divide by the window's total count:

    loss = cross_entropy(logits, labels, ignore_index=-100, reduction="sum") / tokens_in_window
    loss.backward()

## Not the fix
Dividing by K: that is what gives every micro-batch the same weight.

## Known limits
Counts are known for losses with class targets and `ignore_index`; a mask applied by hand is not
seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import ACCUMULATION, Event, EventKind, Source, Tape, Update, updates
from gradclinic.facts.samples import Accumulation
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC107",
    "accumulation-mean-of-means",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME, Source.PROBE),
    topic="accumulation",
    needs=(ACCUMULATION, EventKind.LOSS),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def batches():
    for length in (3, 12, 6, 9) * 5:
        tokens = torch.randint(0, 16, (4, 12))
        labels = tokens.clone()
        labels[:, length:] = -100
        yield tokens, labels


loader = torch.utils.data.DataLoader(list(batches()), batch_size=None)
accumulate = 4
for i, (tokens, labels) in enumerate(loader):
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
    (loss / accumulate).backward()
    if (i + 1) % accumulate == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def batches():
    for length in (3, 12, 6, 9) * 5:
        tokens = torch.randint(0, 16, (4, 12))
        labels = tokens.clone()
        labels[:, length:] = -100
        yield tokens, labels


loader = torch.utils.data.DataLoader(list(batches()), batch_size=None)
accumulate = 4
tokens_in_window = 4 * (3 + 12 + 6 + 9)
for i, (tokens, labels) in enumerate(loader):
    logits = model(tokens)
    loss = nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum"
    )
    (loss / tokens_in_window).backward()
    if (i + 1) % accumulate == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
"""

GOOD_WEIGHTED = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def batches():
    for length in (3, 12, 6, 9) * 5:
        tokens = torch.randint(0, 16, (4, 12))
        labels = tokens.clone()
        labels[:, length:] = -100
        yield tokens, labels


loader = torch.utils.data.DataLoader(list(batches()), batch_size=None)
accumulate = 4
tokens_in_window = 4 * (3 + 12 + 6 + 9)
for i, (tokens, labels) in enumerate(loader):
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
    (loss * (labels != -100).sum() / tokens_in_window).backward()
    if (i + 1) % accumulate == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
"""

UNEQUAL = 1.2
"""Counts that differ by less move the mean less than the noise between batches."""


@rule.check
def means_of_unequal_counts(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        windows = [w for w in map(_mean_losses, updates(tape, optimizer)) if w]
        unequal = [w for w in windows if max(_counts(w)) > UNEQUAL * min(_counts(w))]
        if len(unequal) < 2 or len(unequal) < len(windows) / 2:
            continue
        window = max(unequal, key=lambda w: max(_counts(w)) / min(_counts(w)))
        counts = _counts(window)
        yield rule.finding(
            "each micro-batch's mean gets the same weight although their valid elements differ "
            f"({min(counts)} to {max(counts)})",
            window[0],
            evidence={
                "valid elements in one window": ", ".join(map(str, counts)),
                "weight of one element": f"up to {max(counts) / min(counts):.1f} times that of another",
                **_bias(window),
            },
            fix="sum the losses and divide by the valid elements of the whole window",
            confidence=0.9,
            subject=optimizer,
        )


@rule.check
def measured_bias(seen: Accumulation) -> Iterator[Finding]:
    parts_weigh_alike = max(seen.used) - min(seen.used) <= 0.02 * max(seen.used)
    if seen.matches or seen.coupled or not parts_weigh_alike or seen.scale:
        return
    yield rule.finding(
        f"{seen.parts} micro-batches of equal weight give a gradient {seen.bias:.1%} off the whole batch's",
        seen.where,
        evidence={
            "weights used": ", ".join(f"{weight:.3g}" for weight in seen.used),
            "weights of the whole batch": ", ".join(f"{weight:.3g}" for weight in seen.weights),
            "cosine to the right gradient": f"{seen.cosine:.4f}",
        },
        fix="sum the losses and divide by the valid elements of the whole window",
        confidence=0.95,
    )


def _mean_losses(update: Update) -> tuple[Event, ...]:
    """The mean loss behind each backward of a window, or nothing if any is unclear."""
    backwards = update.micro_batches()
    if len({backward.attrs.get("factor") for backward in backwards}) > 1:
        # Each mean has a weight of its own: its count, as it should be, or something else on purpose.
        return ()
    losses: list[Event] = []
    for backward in backwards:
        before = [e for e in update.of_kind(EventKind.LOSS) if e.index < backward.index]
        if not before or before[-1].attrs.get("reduction") != "mean" or not before[-1].attrs.get("valid"):
            return ()
        losses.append(before[-1])
    return tuple(losses) if len({loss.index for loss in losses}) == len(losses) else ()


def _counts(losses: tuple[Event, ...]) -> list[int]:
    return [int(loss.attrs["valid"]) for loss in losses]


def _bias(losses: tuple[Event, ...]) -> dict[str, str]:
    values = [loss.attrs.get("value") for loss in losses]
    if any(value is None for value in values):
        return {}
    known = [float(value) for value in values if value is not None]
    counts = _counts(losses)
    as_is = sum(known) / len(known)
    true = sum(n * value for n, value in zip(counts, known, strict=True)) / sum(counts)
    return {
        "loss of that window": f"{as_is:.4g} averaged, {true:.4g} over its elements ({as_is / true - 1:+.1%})"
    }

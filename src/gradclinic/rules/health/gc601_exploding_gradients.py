"""Gradients grow by orders of magnitude until the run fails.

## What it finds
Gradient norms, before clipping, that grow ten-thousandfold while the loss grows too, or a hundredfold
until something is not a number; or gradients so steep from the start that a step of any ordinary
length overshoots, in a run that does not learn; or a first loss a million times that of a constant
guess.

## Why it hurts
One update with such a gradient throws the weights far from anything learned. What follows is a loss
that never comes back, or NaN.

## What to do
Look at the cause named above this finding first. Without one: clip the norm, start at a lower learning
rate with a warm-up, check the initialisation and normalise the inputs and targets.

    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)

## Not the fix
Replacing NaN in gradients by zero: the weights are already lost. A smaller `max_norm` alone, when the
learning rate or the scale of the initial weights is what makes them explode.

## Known limits
A large norm that does not grow is left alone while the run learns: summed losses and equation
residuals have norms in the thousands and train well.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, log

from gradclinic.facts.loss import LossCall
from gradclinic.facts.source import Source
from gradclinic.facts.training import Step, Training
from gradclinic.findings import Finding, Kind, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._instability import explosion

rule = Rule(
    "GC601",
    "exploding-gradients",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="gradient size",
    kind=Kind.SYMPTOM,
    subsumes=("GC506", "GC507", "GC508", "GC607", "GC608"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
rnn = nn.RNN(4, 128, batch_first=True)
nn.init.normal_(rnn.weight_hh_l0, std=0.3)
head = nn.Linear(128, 2)
optimizer = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=1e-6)
for step in range(60):
    x = torch.randn(64, 40, 4)
    optimizer.zero_grad()
    states, _ = rnn(x)
    loss = nn.functional.cross_entropy(head(states[:, -1]), (x[:, 0, 0] > 0).long())
    loss.backward()
    optimizer.step()
"""

BAD_THAT_ADAM_SURVIVES = """
import torch
from torch import nn

torch.manual_seed(0)
cell, read_in, head = nn.Linear(32, 32), nn.Linear(1, 32), nn.Linear(32, 1)
nn.init.orthogonal_(cell.weight, gain=2.0)
parts = nn.ModuleList([cell, read_in, head])
optimizer = torch.optim.Adam(parts.parameters(), lr=1e-3)
for step in range(20):
    x = torch.rand(32, 30, 1)
    state = torch.zeros(32, 32)
    for t in range(30):
        state = torch.relu(cell(state) + read_in(x[:, t]))
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(state), x.mean(1))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
rnn = nn.RNN(4, 32, nonlinearity="relu", batch_first=True)
head = nn.Linear(32, 1)
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=3e-3)
for step in range(60):
    x = torch.randn(16, 60, 4)
    optimizer.zero_grad()
    states, _ = rnn(x)
    loss = nn.functional.mse_loss(head(states[:, -1]), x.mean((1, 2))[:, None])
    loss.backward()
    nn.utils.clip_grad_norm_([*rnn.parameters(), *head.parameters()], 1.0)
    optimizer.step()
"""

GOOD_LARGE_FROM_ITS_TARGETS = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-2)
for step in range(150):
    x = torch.randn(256, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), 100 * x[:, :1])
    loss.backward()
    optimizer.step()
"""

FAR_OFF = 1000.0
"""How many times larger than any target an untrained model's predictions are when they explode."""


@rule.check
def gradients_explode(training: Training) -> Iterator[Finding]:
    found = explosion(training)
    if found is None:
        return
    step = found.step
    if found.grown:
        message = f"gradients grew from {found.before:.3g} to {step.norm:.3g} by update {step.index}"
    else:
        message = f"gradients of norm {step.norm:.3g} are far too steep for a loss of {step.loss:.3g}"
    yield rule.finding(
        message,
        training.backward,
        evidence={
            "gradient norm": _norms(training),
            **_strongest(training, step),
            "clipping": "none" if training.clip is None else f"to {step.limit}",
        },
        fix="clip the gradient norm and lower the learning rate; check the scale of the initial weights",
        confidence=0.85,
        subject=training.optimizer.id,
    )


@rule.check
def explodes_on_the_way_forward(call: LossCall) -> Iterator[Finding]:
    """An optimizer that divides by the size of the gradients survives this for long, and learns nothing."""
    trivial = _trivial(call)
    value = call.first_value
    if trivial is None or not call.untrained or not call.trains or call.reduction != "mean":
        return
    steep = FAR_OFF**2 if call.loss == "mse_loss" else FAR_OFF
    if value is None or not isfinite(value) or value < steep * max(trivial, 1.0):
        return
    yield rule.finding(
        f"the first {call.loss} is {value:.3g} where a constant guess costs {trivial:.3g}: values and "
        "gradients explode on their way through the model",
        call.where,
        evidence={"first loss": f"{value:.4g}", "of a constant guess": f"{trivial:.4g}"},
        fix="scale the initial weights (above all those applied again and again), normalise the inputs",
        confidence=0.85,
        subject=call.loss,
    )


def _trivial(call: LossCall) -> float | None:
    """What a model costs that has learned nothing and says nothing."""
    shape = call.input_shape or ()
    if call.loss == "cross_entropy" and len(shape) > 1 and not call.target_is_float:
        return log(shape[1])
    return call.value_of_zeros


def _norms(training: Training) -> str:
    norms = [step.norm for step in training.taken_steps if isfinite(step.norm)]
    shown = norms if len(norms) <= 6 else [*norms[:3], *norms[-3:]]
    words = [f"{norm:.3g}" for norm in shown]
    if len(norms) > 6:
        words.insert(3, "…")
    return " ".join(words)


def _strongest(training: Training, step: Step) -> dict[str, str]:
    if not step.gradients or len(step.gradients) != len(training.tensors):
        return {}
    largest = max(range(len(step.gradients)), key=step.gradients.__getitem__)
    share = (step.gradients[largest] / step.used) ** 2 if step.used else 0.0
    return {"strongest in": f"{training.tensors[largest].name} ({share:.0%} of the squared norm)"}

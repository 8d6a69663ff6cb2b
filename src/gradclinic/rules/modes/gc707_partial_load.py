"""A state_dict fits the model only in part, and strict=False hides it.

## What it finds
`load_state_dict(..., strict=False)` where most of the model stays as it was although the file had
weights to give: keys carry a prefix such as `module.`, or come from another architecture. Also
the size mismatch that not even `strict=False` skips.

## Why it hurts
The run starts from random weights while everybody believes it starts from a checkpoint.

## What to do
Print what `load_state_dict` returns. Strip or add the prefix:

    state = {key.removeprefix("module."): value for key, value in state.items()}

Drop entries of another size before loading, and only those you mean to.

## Not the fix
`strict=False` to get past the error.

## Known limits
A backbone whose head is new, or adapters loaded over a base, are partial on purpose and left
alone as long as the rest fits.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Crash, CrashKind, Load, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import listed
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC707",
    "partial-load",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="loading and saving",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)


def network():
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))


saved = {"module." + key: value for key, value in network().state_dict().items()}
model = network()
model.load_state_dict(saved, strict=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

BAD_SIZES = """
import torch
from torch import nn

model = nn.Linear(4, 3)
model.load_state_dict(nn.Linear(4, 10).state_dict(), strict=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)


def network(outputs):
    return nn.ModuleDict({"body": nn.Linear(4, 16), "head": nn.Linear(16, outputs)})


saved = {key: value for key, value in network(10).state_dict().items() if key.startswith("body")}
model = network(1)
print(model.load_state_dict(saved, strict=False))
groups = [{"params": model["body"].parameters(), "lr": 0.002}, {"params": model["head"].parameters()}]
optimizer = torch.optim.SGD(groups, lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model["head"](torch.relu(model["body"](x))), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

MOSTLY = 0.5


@rule.check
def mostly_not_loaded(load: Load) -> Iterator[Finding]:
    if not load.missing or not load.unexpected:
        return
    share = len(load.missing) / max(load.wanted, 1)
    if not load.prefix and share <= MOSTLY:
        return
    if load.prefix.startswith("+"):
        fix = f'add the prefix: {{"{load.prefix[1:]}" + key: value for key, value in state.items()}}'
    elif load.prefix:
        fix = (
            f'strip the prefix: {{key.removeprefix("{load.prefix}"): value for key, value in state.items()}}'
        )
    else:
        fix = "compare the keys of the file with those of the model, and load with strict=True"
    yield rule.finding(
        f"{len(load.missing)} of {load.wanted} entries of {load.model} were not loaded",
        load.where,
        evidence={"missing": listed(load.missing), "not used": listed(load.unexpected)},
        fix=fix,
        confidence=0.95 if load.prefix else 0.8,
        subject=load.model,
    )


@rule.check
def does_not_fit(crash: Crash) -> Iterator[Finding]:
    if crash.kind is not CrashKind.LOAD:
        return
    yield rule.finding(
        "the checkpoint does not fit the model" + (", and strict=False skips no size" if crash.names else ""),
        crash.where,
        evidence={"does not fit": listed(crash.names) if crash.names else crash.message},
        fix="build the model as it was saved, or drop the entries of another size before loading",
        confidence=0.95,
        severity=Severity.ERROR,
    )

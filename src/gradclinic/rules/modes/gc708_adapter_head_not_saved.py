"""The adapter is saved without the new head that was trained with it.

## What it finds
An adapter configuration (LoRA and its relatives of `peft`) without `modules_to_save` and without a task
type that adds the head by itself, over a model with a freshly made classification head, saved with
`save_pretrained`.

## Why it hurts
The adapter file holds the adapter's own weights. The head that came with
`AutoModelForSequenceClassification` or its like was made at random and is not among them: the loaded
model has a new random head and predicts nothing. The training looked fine. Without `modules_to_save` the
head is frozen as well, and does not even train.

## What to do
    LoraConfig(..., modules_to_save=["classifier"])

or `task_type=TaskType.SEQ_CLS`, which names the usual heads.

## Not the fix
Saving the whole model beside the adapter: it hides that the head was never trained.

## Known limits
Model and adapter have to be built in one file, and where another model without a new head may be the
one under the adapter, nothing is said. Heads that are added by hand are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.adapters import HeadLeftOut
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC708",
    "adapter-head-not-saved",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC,),
    topic="loading and saving",
)

BAD = """
import torch


def fine_tune(name, loader):
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForImageClassification

    model = AutoModelForImageClassification.from_pretrained(name, num_labels=10)
    model = get_peft_model(model, LoraConfig(r=16, target_modules=["query", "value"]))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    for batch in loader:
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    model.save_pretrained("adapter")
"""

GOOD = """
import torch


def fine_tune(name, loader):
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForImageClassification

    model = AutoModelForImageClassification.from_pretrained(name, num_labels=10)
    adapter = LoraConfig(r=16, target_modules=["query", "value"], modules_to_save=["classifier"])
    model = get_peft_model(model, adapter)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    for batch in loader:
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    model.save_pretrained("adapter")
"""


@rule.check
def head_stays_behind(seen: HeadLeftOut) -> Iterator[Finding]:
    yield rule.finding(
        f"the adapter saves its own weights only, and the new head of {seen.head} is lost",
        seen.where,
        evidence={"saved": str(seen.saved)},
        fix='name the head in the configuration: modules_to_save=["classifier"]',
        confidence=0.85,
    )

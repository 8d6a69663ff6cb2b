"""Data sets, orders and checkpoints as a file shows them."""

from __future__ import annotations

import pytest

from tests.rules.scripts import codes_by_lint

DATA_SET = """
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels
        self.noise = torch.zeros(8)
        self.rng = np.random.RandomState(0)

    def __getitem__(self, i):
        {fetch}


loader = DataLoader(Images(a, b), num_workers={workers})
"""


@pytest.mark.parametrize(
    "fetch",
    [
        "self.images[i] *= 0.9; return self.images[i]",
        "image = self.images[i]; image[2:4] = 0; return image",
        "self.images[i] = self.transform(self.images[i]); return self.images[i]",
        "return self.images[i].clamp_(0, 1)",
        "sample = self.images[i]; sample['x'] = self.augment(sample['x']); return sample",
    ],
)
def test_a_fetch_that_writes_into_the_store_is_named(fetch: str):
    assert codes_by_lint(DATA_SET.format(fetch=fetch, workers=0)) == ["GC002"]


@pytest.mark.parametrize(
    "fetch",
    [
        "image = self.images[i].clone(); image[2:4] = 0; return image",
        "label = self.labels[i]; label -= 1; return label",
        "self.images[i] = load(self.paths[i]); return self.images[i]",
        "self.labels[i] += 1; return self.images[i]",
        "sample = self.images[i]; sample['image'] = read(sample['path']); return sample",
        "image = self.images[i]; image = self.transform(image); image[0] = 0; return image",
    ],
)
def test_copies_caches_and_counters_are_left_alone(fetch: str):
    assert codes_by_lint(DATA_SET.format(fetch=fetch, workers=0)) == []


def test_a_generator_that_workers_get_copies_of_is_named():
    fetch = "return self.images[i] + self.rng.normal()"
    assert codes_by_lint(DATA_SET.format(fetch=fetch, workers=4)) == ["GC003"]
    assert codes_by_lint(DATA_SET.format(fetch=fetch, workers=0)) == []
    assert codes_by_lint(DATA_SET.format(fetch=fetch, workers="4, worker_init_fn=seed")) == []


@pytest.mark.parametrize(
    ("lines", "apart"),
    [
        ("np.random.shuffle(x_train)\nnp.random.shuffle(y_train)", True),
        ("images = images[torch.randperm(n)]\nlabels = labels[torch.randperm(n)]", True),
        ("np.random.seed(1)\nnp.random.shuffle(x)\nnp.random.seed(1)\nnp.random.shuffle(y)", False),
        ("np.random.shuffle(x_train)\nnp.random.shuffle(y_test)", False),
        ("order = torch.randperm(n)\nx = x[order]\ny = y[order]", False),
        ("random.shuffle(sources)\nrandom.shuffle(targets)", False),
        ("y = y[torch.randperm(n)]", False),
    ],
)
def test_inputs_and_labels_keep_one_order(lines: str, apart: bool):
    assert codes_by_lint(f"import random\nimport numpy as np\nimport torch\n{lines}\n") == ["GC001"] * apart


CHECKPOINT = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
{load}
for epoch in range(start_epoch, 10):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    state = {{"epoch": epoch, "model": model.state_dict(){more}}}
    torch.save(state, "last.pt")
"""


def test_a_checkpoint_that_is_resumed_from_without_the_optimizer_is_named():
    load = "state = torch.load('last.pt')\nstart_epoch = state['epoch']\n"
    resumed = CHECKPOINT.format(load=load.replace("state", "loaded"), more="")
    assert codes_by_lint(resumed) == ["GC710"]
    whole = CHECKPOINT.format(load=load, more=", 'optimizer': optimizer.state_dict()")
    assert codes_by_lint(whole) == []
    made = "optimizer = torch.optim.Adam(model.parameters())\n"
    anew = resumed.replace(made, "").replace("10):\n", f"10):\n    {made}")
    assert anew != resumed
    assert codes_by_lint(anew) == []


ADAPTED = """
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification


def classifier(name):
    return AutoModelForSequenceClassification.from_pretrained(name)


def adapt(name):
    model = {model}
    model = get_peft_model(model, LoraConfig(r=8{more}))
    model.save_pretrained("adapter")
"""


@pytest.mark.parametrize(
    ("model", "more", "lost"),
    [
        ("AutoModelForSequenceClassification.from_pretrained(name)", "", True),
        ("classifier(name)", "", True),
        ("AutoModelForCausalLM.from_pretrained(name)", "", False),
        ("AutoModelForSequenceClassification.from_pretrained(name)", ", init_lora_weights=False", False),
    ],
)
def test_only_the_adapter_over_the_new_head_loses_it(model: str, more: str, lost: bool):
    assert codes_by_lint(ADAPTED.format(model=model, more=more)) == ["GC708"] * lost


def test_another_model_of_the_file_may_wear_the_adapter():
    other = "\n\ndef language(name):\n    return AutoModelForCausalLM.from_pretrained(name)\n"
    assert codes_by_lint(ADAPTED.format(model="language(name)", more="") + other) == []


BY_HAND = """
import lightning as L
import torch
from torch import nn


class Pair(L.LightningModule):
    def __init__(self, rate):
        super().__init__()
        {switch}
        self.generator, self.critic = nn.Linear(4, 4), nn.Linear(4, 1)

    def training_step(self, batch, index):
        optimizer_g, optimizer_d = self.optimizers()
        loss = -self.critic(self.generator(batch)).mean()
        optimizer_g.zero_grad()
        self.manual_backward(loss)
        optimizer_g.step()
        optimizer_d.zero_grad()
        self.manual_backward(self.critic(batch).mean())
        optimizer_d.step()
        {more}

    def configure_optimizers(self):
        g = torch.optim.Adam(self.generator.parameters())
        d = torch.optim.Adam(self.critic.parameters())
        return [g, d], [torch.optim.lr_scheduler.ExponentialLR(g, 0.9)]
"""
BY_HAND_IT_IS = "self.automatic_optimization = False"


def test_who_optimises_by_hand_advances_schedules_by_hand():
    assert codes_by_lint(BY_HAND.format(switch=BY_HAND_IT_IS, more="pass")) == ["GC114"]


@pytest.mark.parametrize(
    ("switch", "more"),
    [
        (BY_HAND_IT_IS, "self.lr_schedulers().step()"),
        (BY_HAND_IT_IS, "self.trainer.lr_scheduler_configs[0].scheduler.step()"),
        (BY_HAND_IT_IS, "for one in self.all: one.step()"),
        (BY_HAND_IT_IS, "advance(self)"),
        (BY_HAND_IT_IS, "tick = self.schedule.step; tick()"),
        ("if rate: self.automatic_optimization = False", "pass"),
        ("self.automatic_optimization = rate is None", "pass"),
        ("pass", "pass"),
    ],
)
def test_what_may_be_advanced_is_left_alone(switch: str, more: str):
    assert codes_by_lint(BY_HAND.format(switch=switch, more=more)) == []


def test_a_base_of_the_project_may_advance_them():
    source = BY_HAND.format(switch=BY_HAND_IT_IS, more="pass")
    assert codes_by_lint(source.replace("L.LightningModule)", "Advancing)")) == []
    assert codes_by_lint(f"{source}\n\nclass Advancing(Pair):\n    pass\n") == []

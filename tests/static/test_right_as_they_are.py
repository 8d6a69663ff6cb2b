"""Loops that are right and look odd: the smallest forms of what public training code does on purpose."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradclinic.static.choices import Choices
from tests.rules.scripts import codes_by_lint
from tests.static.reading import only_tape, spelled

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
"""

SCALER_THAT_MAY_BE_NONE = """
class Solver:
    def run_step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        if self.scaler is not None:
            loss = self.scaler.scale(loss)
        loss.backward()
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.optimizer.zero_grad()
"""

SOME_GRADIENTS_HELD_BACK = """
def train(model, optimizer, loader, frozen_for):
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        if step < frozen_for:
            for name, p in model.named_parameters():
                if "prototypes" in name:
                    p.grad = None
        optimizer.step()
"""

MEMORY_TAKEN_AHEAD_AND_BROKEN_BATCHES_LEFT_OUT = """
model = nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
if args.ahead is not None:
    for size in range(1, args.ahead):
        model(torch.randn(size, 4)).sum().backward()
        model.zero_grad()
for x, y in loader:
    loss = F.cross_entropy(model(x), y)
    if torch.isnan(loss).any() or not torch.isfinite(loss):
        continue
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

A_SCHEDULE_AFTER_A_WARM_UP = """
from warmup_scheduler import GradualWarmupScheduler

model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
in_steps = torch.optim.lr_scheduler.MultiStepLR(optimizer, [30, 40])
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
after = in_steps
if args.cosine:
    after = cosine
schedule = GradualWarmupScheduler(optimizer, multiplier=10, total_epoch=1, after_scheduler=after)
for epoch in range(50):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    schedule.step()
"""

ONE_FUNCTION_STEPS_EACH_OF_TWO = """
class Agent:
    def learn(self, batch):
        state, target = batch
        self.update(self.first_optimizer, self.first, F.mse_loss(self.first(state), target))
        self.update(self.second_optimizer, self.second, F.mse_loss(self.second(state), target))

    def update(self, optimizer, network, loss):
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()

    def run(self, loader):
        for epoch in range(10):
            for batch in loader:
                self.learn(batch)
"""

OPTIMIZERS_WITH_THEIR_NUMBERS = """
def train(model, optimizers, loader, begins):
    for epoch in range(10):
        for x, y in loader:
            for number, optimizer in enumerate(optimizers):
                optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            for number, optimizer in enumerate(optimizers):
                if epoch >= begins[number]:
                    optimizer.step()
"""

A_SCHEDULE_OF_EPOCHS_WITH_A_SCALER = """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [30, 60])
scaler = torch.amp.GradScaler()
for epoch in range(90):
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()
    schedule.step()
"""

A_LOSS_THAT_TRAINS_ITS_ADVERSARY = """
class AdversarialLoss(nn.Module):
    def __init__(self, adversary, optimizer):
        super().__init__()
        self.adversary = adversary
        self.optimizer = optimizer

    def opinion(self, x):
        return self.adversary(x)

    def train_adversary(self, fake, real):
        loss = self.opinion(fake.detach()).mean() - self.opinion(real).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def forward(self, fake, real):
        return -self.opinion(fake).mean()
"""

OPTIMIZERS_OF_A_STATE = """
def train(state, loader):
    for x, y in loader:
        for optimizer in state.optimizers:
            optimizer.zero_grad()
        F.cross_entropy(state.model(x), y).backward()
        for optimizer in state.optimizers:
            optimizer.step()
"""

INFERENCE_WITH_ITS_OWN_OPTIMIZER = """
import pyro

svi = pyro.infer.SVI(model, guide, pyro.optim.Adam({"lr": 0.01}), loss=pyro.infer.Trace_ELBO())
for step in range(1000):
    loss = svi.step(data)
"""

STEP_THAT_TAKES_OPTIONS = """
from LBFGS import FullBatchLBFGS

optimizer = FullBatchLBFGS(model.parameters(), lr=0.1)
loss = closure()
loss.backward()
for step in range(100):
    loss, fail = optimizer.step({"closure": closure, "current_loss": loss})
"""

GRADIENTS_COLLECTED_ELSEWHERE = """
def train(objective, phases, loader):
    for batch in loader:
        for phase in phases:
            phase.opt.zero_grad()
            objective.accumulate_gradients(phase=phase.name, batch=batch)
            phase.opt.step()
"""

PIPELINE = """
class Trainer:
    def __init__(self, config):
        self.optimizer, self.lr_scheduler = build_optimizer(config)
        self.pp_schedule = build_pipeline(config)

    def train(self, loader):
        for step in range(self.interval):
            self.optimizer.zero_grad()
            batch = next(loader)
            self.pp_schedule.step(batch, target=batch.target, losses=[])
            self.optimizer.step()
            self.lr_scheduler.step()
"""

TENSOR_GIVEN_TO_A_MODEL = """
from accelerate import Accelerator

accelerator = Accelerator()
embedding = nn.Parameter(encoder(prompt))
optimizer = torch.optim.Adam([embedding], lr=0.1)
for step in range(100):
    loss = F.mse_loss(unet(noise, embedding), noise)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
fine = torch.optim.Adam(unet.parameters(), lr=1e-5)
for step in range(100):
    loss = F.mse_loss(unet(noise, embedding), noise)
    accelerator.backward(loss)
    fine.step()
    fine.zero_grad()
"""

EMBEDDINGS_IN_A_DICT = """
model = nn.Linear(4, 2)
embed_layer = nn.Embedding(100, 4, sparse=True)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
sparse_optimizer = torch.optim.SparseAdam(list(embed_layer.parameters()), lr=0.1)
for blocks, labels in loader:
    rows = embed_layer(blocks)
    rows = {kind: row.to("cuda") for kind, row in rows.items()}
    loss = F.cross_entropy(model(rows, blocks), labels)
    optimizer.zero_grad()
    sparse_optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    sparse_optimizer.step()
"""

ALIAS_FOR_A_MOMENT = """
optimizer = torch.optim.AdamW(student_model.parameters(), lr=0.1)
for x in loader:
    out = student_model(x)
    inner_model = unwrap(student_model)
    states = inner_model.states
    with torch.no_grad():
        teacher_model(x)
    inner_model = unwrap(teacher_model)
    loss = F.mse_loss(out, inner_model.states)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

TICKS_PER_MICRO_BATCH = """
from accelerate import Accelerator
from diffusers.optimization import get_scheduler

accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
lr_scheduler = get_scheduler(
    "cosine", optimizer=optimizer, num_training_steps=args.max_train_steps * args.gradient_accumulation_steps
)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for step, (x, y) in enumerate(loader):
    with accelerator.accumulate(model):
        accelerator.backward(F.cross_entropy(model(x), y))
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()
"""

SIZED_BY_A_NUMBER_OF_SAMPLES = """
from transformers import get_polynomial_decay_schedule_with_warmup

num_epochs = 16
total = 33000 * num_epochs / params.batch_size
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
lr_scheduler = get_polynomial_decay_schedule_with_warmup(
    optimizer, num_warmup_steps=total * 0.16, num_training_steps=total
)
for epoch in range(num_epochs):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        lr_scheduler.step()
"""

LOSSES_OF_ONE_WINDOW = """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
running = 0
for step, (x, y) in enumerate(loader):
    loss = F.cross_entropy(model(x), y) / window
    running += loss
    loss.backward()
    if (step + 1) % window == 0 or step + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
        log(running.item())
        running = 0
"""

LOSSES_OF_ONE_CLOSURE = """
model = nn.Linear(4, 2)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1)


def closure():
    optimizer.zero_grad()
    total = torch.tensor(0.0)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y) / len(loader)
        loss.backward()
        total += loss
    return total


for step in range(10):
    optimizer.step(closure)
"""

BEST_WEIGHTS_WITH_THEIR_EPOCH = """
model = nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
best_score = 0
for epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    score = evaluate(model)
    if best_score < score:
        best_score = score
        torch.save({"state_dict": model.state_dict(), "epoch": epoch}, path)
checkpoint = torch.load(path)
print(checkpoint["epoch"])
"""

GRADIENTS_REPLACED_BY_ZEROS = """
weight = torch.zeros(3, 3, requires_grad=True)
bias = torch.zeros(3, requires_grad=True)
parameters = [weight, bias]
solver = torch.optim.Adam(parameters, lr=1e-3)
for x, y in loader:
    F.cross_entropy(x @ weight + bias, y).backward()
    solver.step()
    for parameter in parameters:
        if parameter.grad is not None:
            data = parameter.grad.data
            parameter.grad = data.new().resize_as_(data).zero_()
"""

PROGRAMS = {name: text for name, text in list(globals().items()) if name.isupper() and name != "HEAD"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_said(name: str) -> None:
    assert codes_by_lint(HEAD + dedent(PROGRAMS[name])) == []


def test_what_equals_one_option_equals_no_other() -> None:
    path = Choices({})
    assert path.decide("(args.schedule Eq 'step')")
    assert not path.decide("(args.schedule Eq 'none')")
    assert path.decide("(args.optimizer Eq 'none')")


def test_a_loss_that_starts_as_a_number_has_been_added_to_when_it_goes_backward() -> None:
    tape = only_tape(
        """
        def train(model, optimizer, loader):
            for x, y in loader:
                loss = 0.0
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """
    )
    assert "zero_grad backward step" in spelled(tape)

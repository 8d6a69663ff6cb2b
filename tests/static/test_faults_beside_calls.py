"""Faults beside calls that are not followed: what they are called and given tells that they hide nothing.

Beside each, the same loop where such a call may well do what is missing: of that nothing is said.
"""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from tests.static.reading import TORCH, marked, told

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
"""

OPTIMIZER_OF_THE_FILE = """
class Lars(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.add_(p.grad, alpha=-group["lr"])

def run(model, loader):
    optimizer = Lars(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()  # GC101
        optimizer.step()
"""

OPTIMIZER_WITH_A_HELPER = """
def whiten(update, steps):
    for _ in range(steps):
        update = 2 * update - update @ update.T @ update
    return update

def smoothed(grad, momentum, beta):
    momentum.lerp_(grad, 1 - beta)
    return whiten(momentum, steps=5)

class White(torch.optim.Optimizer):
    def __init__(self, groups):
        for group in groups:
            group["lr"] = group.get("lr", 0.02)
        super().__init__(groups, {})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                state = self.state[p]
                if len(state) == 0:
                    state["momentum"] = torch.zeros_like(p)
                p.add_(smoothed(p.grad, state["momentum"], 0.95), alpha=-group["lr"])

def run(model, loader):
    optimizer = White([dict(params=model.parameters(), lr=0.1)])
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()  # GC101
        optimizer.step()
"""

WORDS_OF_A_MODEL = """
def run(model, loader, path):
    model.load_pretrain_params(path)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()  # GC101
        optimizer.step()
        print(model.get_step())
        model.save(path, optimizer)
"""

A_FORWARD_FOR_TRAINING = """
def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        losses = model.forward_train(x, y)
        losses["loss"].backward()  # GC101
        optimizer.step()
"""

AN_AVERAGE_OF_THE_WEIGHTS = """
from averages import Average

class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.ema = Average(self.model, beta=0.999)

    def train(self, loader):
        for x, y in loader:
            F.cross_entropy(self.model(x), y).backward()  # GC101
            self.optimizer.step()
            self.ema.update()
"""

FUNCTIONS_THAT_ONLY_LOOK = """
from project import overlap, fingerprint

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        output, loss = model(x, y)
        loss.backward()  # GC101
        optimizer.step()
        print(overlap(output, y), fingerprint(model))
"""

ONE_OF_TWO_OPTIMIZERS = """
from apex.optimizers import FusedAdam, FusedLAMB

def run(model, loader, args):
    if args.kind == "adam":
        optimizer = FusedAdam(model.parameters(), lr=0.1)
    else:
        optimizer = FusedLAMB(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()  # GC101
        optimizer.step()
"""

A_SCHEDULE_OR_NONE = """
from project import make_schedule

def run(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = make_schedule(optimizer) if args.decay else None
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()  # GC101
        optimizer.step()
        if schedule is not None:
            schedule.step()
"""

AN_OPTIMIZER_THE_MODEL_BUILDS = """
def run(model, loader):
    optimizer = model.configure_optimizers(0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()  # GC101
        optimizer.step()
"""

AN_ENVIRONMENT = """
import gym

class Scaled(gym.Wrapper):
    def action(self, action):
        return 2 * action

def run(policy, source, args):
    env = Scaled(gym.make(args.name))
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    state = env.reset()
    for step in range(10000):
        action = policy(state)
        state, reward, _, _ = env.step(action.argmax())
        loss = -(reward * action).mean()
        loss.backward()  # GC101
        optimizer.step()
    env.close()
"""

STOPPED_EARLY = """
def run(model, loader, stopper, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            loss.backward()  # GC101
            optimizer.step()
        if stopper.step(loss.item(), model):
            break
"""

AN_ENGINE_THAT_CALLS_IT = """
from ignite.engine import Engine

def train(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def update(engine, batch):
        x, y = batch
        loss = F.cross_entropy(model(x), y) / args.accumulation_steps
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC111
        if engine.state.iteration % args.accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()

    trainer = Engine(update)
    trainer.run(loader)
"""

A_STEP_OF_ALL_CORES = """
import torch_xla.core.xla_model as xm

def run(model, loader, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()  # GC101
        xm.optimizer_step(optimizer)
"""

A_CLIP_OF_THE_PROJECT = """
from project import clip_grad_norm_

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        print(clip_grad_norm_(model.parameters(), 1.0))  # GC109
"""

FAULTS = {name: text for name, text in list(globals().items()) if name.isupper() and name != "HEAD"}

MAY_HIDE_IT = {
    "an optimizer that clears after its step": (
        "OPTIMIZER_OF_THE_FILE",
        'alpha=-group["lr"])',
        'alpha=-group["lr"])\n                p.grad = None',
    ),
    "a method that updates": ("WORDS_OF_A_MODEL", "print(model.get_step())", "model.train_step()"),
    "an average that is none": ("AN_AVERAGE_OF_THE_WEIGHTS", "ema", "agent"),
    "a function that prepares": ("FUNCTIONS_THAT_ONLY_LOOK", "fingerprint", "reset"),
    "a function that may do anything": ("FUNCTIONS_THAT_ONLY_LOOK", "fingerprint", "run_hooks"),
    "an optimizer that is called": ("ONE_OF_TWO_OPTIMIZERS", "optimizer.step()", "optimizer(model)"),
    "a model with a step of its own": ("AN_OPTIMIZER_THE_MODEL_BUILDS", "optimizer.step()", "model.step()"),
    "a function that is called by hand": ("AN_ENGINE_THAT_CALLS_IT", "Engine(update)", "Engine(other)"),
    "a clip that measures": ("A_CLIP_OF_THE_PROJECT", "1.0)", "1.0, clip_grad=False)"),
    "an environment that has the policy": ("AN_ENVIRONMENT", "gym.make(args.name)", "policy"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told(name: str) -> None:
    source = HEAD + dedent(FAULTS[name])
    assert told(source) == marked(source)


@pytest.mark.parametrize("name", [name for name, text in FAULTS.items() if "# GC101" in text])
def test_it_is_not_told_once_cleared(name: str) -> None:
    source = re.sub(r"(?m)^( +)(\S*optimizer)\.step\(\)$", r"\g<0>\n\1\2.zero_grad()", FAULTS[name])
    source = source.replace("step(optimizer)", "step(optimizer)\n        optimizer.zero_grad()")
    assert told(HEAD + source) == set()


@pytest.mark.parametrize("what", MAY_HIDE_IT)
def test_nothing_is_told_beside(what: str) -> None:
    name, harmless, acting = MAY_HIDE_IT[what]
    assert harmless in FAULTS[name]
    assert told(HEAD + FAULTS[name].replace(harmless, acting)) == set()


A_CALL_EVERY_EPOCH = """
from project import evaluate_and_save

def run(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    BEFORE
    for epoch in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            loss.backward()  # GC101
            optimizer.step()
            WITHIN
        evaluate_and_save(model, optimizer, epoch)
"""


def test_a_call_every_epoch_clears_for_no_batch_of_it() -> None:
    source = TORCH + A_CALL_EVERY_EPOCH.replace("BEFORE", "pass").replace("WITHIN", "pass")
    assert told(source) == marked(source)


@pytest.mark.parametrize(
    ("before", "within"),
    [
        ("pass", "settle(optimizer)"),
        ("pass", "optimizer.zero_grad()"),
        ("prepare_everything(model, optimizer, hooks)", "pass"),
    ],
)
def test_one_every_batch_may_and_so_may_what_it_is_given_to_at_first(before: str, within: str) -> None:
    source = TORCH + A_CALL_EVERY_EPOCH.replace("BEFORE", before).replace("WITHIN", within)
    assert told(source) == set()


MOMENTUM_OF_THE_LAYERS = """
import pytorch_utils

def run(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    model.train()
    bn_scheduler = pytorch_utils.BNMomentumScheduler(model, lambda epoch: 0.5**epoch)
    for epoch in range(epochs):
        for x, y in loader:
            if bn_scheduler is not None:
                bn_scheduler.step(epoch - 1)
            CLEAR
            loss = F.cross_entropy(model(x), y)
            loss.backward()  # GC101
            optimizer.step()
"""


def test_a_schedule_of_layers_touches_no_gradient() -> None:
    source = TORCH + MOMENTUM_OF_THE_LAYERS.replace("CLEAR", "pass")
    assert told(source) == marked(source)
    assert told(TORCH + MOMENTUM_OF_THE_LAYERS.replace("CLEAR", "optimizer.zero_grad()")) == set()


@pytest.mark.parametrize(
    "way", ["step = engine.step", "step = partial(engine.step)", "step = lambda: engine.step()"]
)
def test_a_step_may_be_called_by_another_name(way: str) -> None:
    source = f"""
    import deepspeed
    from functools import partial

    def run(net, args, loader):
        engine, *_ = deepspeed.initialize(model=net, args=args)
        backward = engine.backward
        {way}
        for x, y in loader:
            backward(F.mse_loss(engine(x), y))
            step()
            getattr(engine, "step")()
    """
    assert told(TORCH + dedent(source)) == set()

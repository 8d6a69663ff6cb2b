"""Loops that are right because of a call: what clears, unscales or goes backward there may have any name."""

from __future__ import annotations

import pytest

from tests.rules.scripts import codes_by_lint

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
"""

SCALED = """
def run(model, loader):
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        clip_grad_norm_(model.parameters(), 1.0, scaler, optimizer)
        scaler.step(optimizer)
        scaler.update()
"""

UNCLEARED = """
def run(model, loader):
    optimizer = Own(model.parameters(), 0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""

AN_OWN_CLIP_THAT_UNSCALES = (
    """
def clip_grad_norm_(parameters, limit, scaler, optimizer):
    scaler.unscale_(optimizer)
    return torch.nn.utils.clip_grad_norm_(parameters, limit)
"""
    + SCALED
)

A_CLIP_OUT_OF_SIGHT_THAT_HAS_THE_SCALER = "from project import clip_grad_norm_\n" + SCALED

A_STEP_THAT_CLEARS_BY_ANOTHER_NAME = (
    """
class Own(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                g = p.grad
                p.add_(g, alpha=-group["lr"])
                g.zero_()
"""
    + UNCLEARED
)

A_STEP_THAT_CLEARS_ALL_AT_ONCE = (
    """
class Own(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            slopes = [p.grad for p in group["params"]]
            torch._foreach_add_(group["params"], slopes, alpha=-group["lr"])
            torch._foreach_zero_(slopes)
"""
    + UNCLEARED
)

A_STEP_WHOSE_HELPER_CLEARS = (
    """
def descend(p, slope, lr):
    p.add_(slope, alpha=-lr)
    slope.zero_()

class Own(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                descend(p, p.grad, group["lr"])
"""
    + UNCLEARED
)

A_STEP_WHOSE_HELPER_HAS_ANOTHER_CLEAR = (
    """
def forget(slope):
    slope.zero_()

def descend(p, slope, lr):
    p.add_(slope, alpha=-lr)
    forget(slope)

class Own(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                descend(p, p.grad, group["lr"])
"""
    + UNCLEARED
)

A_STEP_THAT_FILLS_WITH_ZEROS_WHAT_IS_THERE = (
    """
class Own(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad, alpha=-group["lr"])
                    p.grad = torch.zeros_like(p)
"""
    + UNCLEARED
)

A_FUNCTION_THAT_CLEARS_UNDER_ANY_NAME = """
from nets import refresh

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        refresh(model)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""

A_FUNCTION_THAT_CHECKS_AND_CLEARS = """
from nets import check_and_zero

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        check_and_zero(optimizer)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""

A_FUNCTION_THAT_CLEARS_THE_WEIGHTS_IT_IS_GIVEN = """
from nets import refresh

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        refresh(model.parameters())
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""

A_FUNCTION_THAT_JUDGES_AND_GOES_BACKWARD = """
from nets import judge

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        judge(model(x), y)
        optimizer.step()
"""

A_FUNCTION_THAT_GIVES_A_LOSS_AND_GRADIENTS = """
from nets import loss_and_grads

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_and_grads(model(x), y)
        optimizer.step()
"""

A_MODEL_THAT_SHOWS_WHAT_IT_IS_GIVEN = """
class Loop:
    def run(self, model, loader, held_out, optimizer, epochs):
        for epoch in range(epochs):
            self.once(model, loader, optimizer, validation=False)
            self.once(model, held_out, optimizer, validation=True)

    def once(self, model, loader, optimizer, validation):
        if validation:
            model.eval()
        else:
            model.train()
        for it, x in enumerate(loader):
            if not validation:
                optimizer.zero_grad()
                out = model(x)
            else:
                with torch.no_grad():
                    out = model(x)
            if it % self.interval == 0:
                model.visualize(self.screen, out, "it")
            if not validation:
                out["objective"].backward()
                optimizer.step()
"""

A_NETWORK_THAT_IS_TRAINED_FROM_THE_SECOND_EPOCH_ON = """
def train(G, D, loader, opt_g, opt_d, epoch):
    for x, y in loader:
        opt_g.zero_grad()
        F.mse_loss(G(x), y).backward()
        opt_g.step()
        if epoch > 0:
            opt_d.zero_grad()
            F.mse_loss(D(x), y).backward()
            opt_d.step()

def run(G, D, loader, epochs):
    opt_g = torch.optim.SGD(G.parameters(), lr=0.1)
    opt_d = torch.optim.SGD(D.parameters(), lr=0.1)
    rate_g = torch.optim.lr_scheduler.StepLR(opt_g, 10)
    rate_d = torch.optim.lr_scheduler.StepLR(opt_d, 10)
    for epoch in range(epochs):
        train(G, D, loader, opt_g, opt_d, epoch)
        rate_g.step()
        rate_d.step()
"""

A_MODEL_THAT_COMES_BACK_CLEARED = """
from nets import refreshed

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        model = refreshed(model)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""

A_BLOCK_THAT_CLEARS_UNDER_ANY_NAME = """
from nets import renewed

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        with renewed(model):
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
"""

A_SUM_OF_LOSSES_THAT_GOES_BACKWARD = """
from losses import LossBag

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        total_loss = LossBag()
        total_loss.add("entropy", F.cross_entropy(model(x), y))
        total_loss.apply()
        optimizer.step()
"""

AN_EVENT_THAT_CLEARS = """
from ignite.engine import Engine, Events

def run(model, optimizer, loader):
    def update(engine, batch):
        x, y = batch
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    trainer = Engine(update)
    trainer.add_event_handler(Events.ITERATION_STARTED, lambda engine: optimizer.zero_grad())
    trainer.run(loader)
"""

AN_EVENT_THAT_MAY_CLEAR = """
from ignite.engine import Engine, Events
from project import Forget

def run(model, optimizer, loader):
    def update(engine, batch):
        x, y = batch
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    trainer = Engine(update)
    trainer.add_event_handler(Events.ITERATION_STARTED, Forget(optimizer))
    trainer.run(loader)
"""

A_CLIP_THAT_MEASURES = """
def run(model, loader):
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        print(nn.utils.clip_grad_norm_(model.parameters(), float("inf")))
"""

A_CLIP_THAT_MEASURES_A_WINDOW = """
import math

def run(model, loader, k=4):
    optimizer = torch.optim.Adam(model.parameters())
    for step, (x, y) in enumerate(loader):
        (F.cross_entropy(model(x), y) / k).backward()
        print(nn.utils.clip_grad_norm_(model.parameters(), max_norm=math.inf))
        if (step + 1) % k == 0 or step + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""

AN_OPTIMIZER_IN_A_COAT = """
class Lookahead(torch.optim.Optimizer):
    def __init__(self, base):
        self.base = base

    def step(self):
        self.base.step()

def run(model, loader):
    inner = torch.optim.Adam(model.parameters())
    optimizer = Lookahead(inner)
    for x, y in loader:
        inner.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""

A_STEP_THAT_DELETES = (
    """
class Own(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(p.grad, alpha=0.1)
                del p.grad
"""
    + UNCLEARED
)

A_SCHEDULE_THAT_IS_CALLED_AFTER_ITS_OPTIMIZER = """
from schedules import cosine_scheduler

def run(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optim_lr = cosine_scheduler(optimizer, epochs)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        optim_lr.step()
"""

A_SCHEDULE_THAT_SETS_THE_RATE_OF_THE_STEP_THAT_FOLLOWS = """
from schedules import WarmupCosineSchedule

def run(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = WarmupCosineSchedule(optimizer, warmup_steps=100, T_max=epochs * len(loader))
    for epoch in range(epochs):
        for x, y in loader:
            lr = schedule.step()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
"""

A_GRADIENT_THAT_LIVES_ON = """
def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        for p in model.parameters():
            if p.grad is not None:
                p.grad.mul_(0.9)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""

PROGRAMS = {name: text for name, text in list(globals().items()) if name.startswith(("A_", "AN_"))}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_said(name: str) -> None:
    assert codes_by_lint(HEAD + PROGRAMS[name]) == []


def test_what_comes_before_every_step_is_too_early_for_two_as_for_one() -> None:
    late = PROGRAMS["A_NETWORK_THAT_IS_TRAINED_FROM_THE_SECOND_EPOCH_ON"]
    always = late.replace("epoch > 0", "True").replace("        rate_d.step()\n", "")
    early = always.replace("        train(", "        rate_d.step()\n        train(")
    assert codes_by_lint(HEAD + early) == ["GC112"]


def test_a_backward_that_is_nowhere_is_missed() -> None:
    program = PROGRAMS["A_FUNCTION_THAT_JUDGES_AND_GOES_BACKWARD"]
    forgotten = program.replace("judge(model(x), y)", "loss = F.mse_loss(model(x), y)")
    assert codes_by_lint(HEAD + forgotten) == ["GC105"]

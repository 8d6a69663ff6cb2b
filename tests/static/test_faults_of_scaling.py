"""Clips of gradients that carry a scale, where the scaler is not where one would look for it first.

Beside each, the same program with the scale taken out before: of that nothing is said.
"""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.static.reading import TORCH, marked, told

A_BLOCK_OF_APEX = """
from apex import amp

def run(model, optimizer, loader, args):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if args.fp16:
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
                nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)  # GC501
        else:
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
"""

A_SCALER_IF_THERE_IS_ONE = """
try:
    from torch.cuda.amp import GradScaler
except ImportError:
    class GradScaler:
        def __init__(self, **options):
            pass
        def scale(self, loss):
            return loss
        def unscale_(self, optimizer):
            pass
        def step(self, optimizer):
            optimizer.step()
        def update(self):
            pass

def run(model, loader):
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = GradScaler(enabled=True)
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC501
        scaler.step(optimizer)
        scaler.update()
"""

A_SCALER_AMONG_OTHER_THINGS = """
def run(model, loader, state):
    optimizer = torch.optim.AdamW(model.parameters())
    state["scaler"] = torch.amp.GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        state["scaler"].scale(F.cross_entropy(model(x), y)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC501
        state["scaler"].step(optimizer)
        state["scaler"].update()
"""

A_SWITCH_BEHIND_ANOTHER = """
class Engine:
    def __init__(self, model, config):
        self.model = model
        self.config = config
        self.optimizer = torch.optim.AdamW(model.parameters())
        self.scaler = torch.amp.GradScaler()

    def run(self, x, y):
        if self.state.iteration % self.config.every == 1 or self.config.every == 1:
            if self.state.iteration > 1:
                self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y) / self.config.every
        if self.config.gpu >= 0 and not self.config.plain:
            self.scaler.scale(loss).backward()
        else:
            loss.backward()
        if self.state.iteration % self.config.every == 0 and self.state.iteration > 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # GC501
            if self.config.gpu >= 0 and not self.config.plain:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
"""

A_SCALER_FOR_EACH_OF_TWO_RUNS = """
def run(model, loader, coarse):
    groups = [p for p in model.head.parameters()] if coarse else [p for p in model.parameters()]
    optimizer = torch.optim.AdamW([dict(params=groups)])
    scaler = torch.amp.GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC501
        scaler.step(optimizer)
        scaler.update()

def main(loader):
    run(Net(), loader, coarse=True)
    run(Net(), loader, coarse=False)

main(DATA)
"""

FAULTS = {name: text for name, text in list(globals().items()) if name.startswith("A_")}
RIGHT = {
    "A_BLOCK_OF_APEX": (
        "                nn.utils.clip_grad_norm_(amp",
        "            nn.utils.clip_grad_norm_(amp",
    ),
    "A_SCALER_IF_THERE_IS_ONE": (
        "        nn.utils.clip",
        "        scaler.unscale_(optimizer)\n        nn.utils.clip",
    ),
    "A_SCALER_AMONG_OTHER_THINGS": (
        "        nn.utils.clip",
        '        state["scaler"].unscale_(optimizer)\n        nn.utils.clip',
    ),
    "A_SCALER_FOR_EACH_OF_TWO_RUNS": (
        "        nn.utils.clip",
        "        scaler.unscale_(optimizer)\n        nn.utils.clip",
    ),
    "A_SWITCH_BEHIND_ANOTHER": (
        "            nn.utils.clip",
        """            if self.config.gpu >= 0 and not self.config.plain:
                self.scaler.unscale_(self.optimizer)
            nn.utils.clip""",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told_where_it_is(name: str) -> None:
    source = TORCH + dedent(FAULTS[name])
    assert told(source) == marked(source)


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_not_told_once_the_scale_is_out(name: str) -> None:
    before, after = RIGHT[name]
    assert before in FAULTS[name]
    assert told(TORCH + FAULTS[name].replace(before, after, 1)) == set()


def test_a_block_that_scales_nothing_yet_is_no_reason_to_complain() -> None:
    clipped_first = A_BLOCK_OF_APEX.replace(
        """                scaled.backward()
                nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)  # GC501
""",
        """                print(scaled)
            loss.backward()
            nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
""",
    )
    assert told(TORCH + clipped_first) == set()


BROUGHT_BY_A_STAR = """
from settings import *

def train_fn(model, criterion, optimizer, train_loader):
    model.train()
    scaler = torch.cuda.amp.GradScaler(enabled=CFG.amp)
    for step, (inputs, labels) in enumerate(train_loader):
        with torch.cuda.amp.autocast(enabled=CFG.amp):
            outputs = model(inputs)
        loss = criterion(outputs.view(-1, 1), labels.view(-1, 1))
        scaler.scale(loss).backward()
        UNSCALE
        torch.nn.utils.clip_grad_norm_(model.parameters(), CFG.max_norm)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
"""


def test_torch_is_known_by_its_name_where_a_star_brings_it() -> None:
    assert told(BROUGHT_BY_A_STAR.replace("UNSCALE", "pass")) == {("GC501", 13)}
    assert told(BROUGHT_BY_A_STAR.replace("UNSCALE", "scaler.unscale_(optimizer)")) == set()


GIVEN_IN_LISTS = """
from project import Net

def run(loader, epochs):
    model = Net()
    scaler = torch.cuda.amp.GradScaler()
    [optimizer], [scheduler] = model.configure_optimizers()
    for epoch in range(epochs):
        optimizer.zero_grad()
        for step, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x), y) / 4
            scaler.scale(loss).backward()
            UNSCALE
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC501
            if (step + 1) % 4 == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
"""
ON_EACH_WINDOW = """
            if (step + 1) % 4 == 0:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
"""


def test_what_a_list_of_one_holds_is_the_optimizer() -> None:
    fault = TORCH + GIVEN_IN_LISTS.replace("UNSCALE", "pass")
    assert marked(fault) <= told(fault)
    clip = "            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC501\n"
    right = GIVEN_IN_LISTS.replace("            UNSCALE\n" + clip, "").replace(
        "            if (step + 1) % 4 == 0:\n", ON_EACH_WINDOW[1:]
    )
    assert told(TORCH + right) == set()


def test_lists_of_several_tell_nothing_of_each() -> None:
    several = GIVEN_IN_LISTS.replace("[optimizer], [scheduler]", "[optimizer, other], [scheduler]")
    several = several.replace("UNSCALE", "scaler.unscale_(optimizer)\n            other.zero_grad()")
    assert "GC501" not in {code for code, _ in told(TORCH + several)}


MADE_BY_A_CALL_OUT_OF_SIGHT = """
class Trainer:
    def __init__(self, model, optimizer, rate):
        self.model = model
        self.scaler = torch.cuda.amp.GradScaler()
        self.optimizer = optimizer(params=self.model.parameters(), lr=rate)
        announce(self.optimizer)

    def train(self, loader):
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y)
            self.scaler.scale(loss).backward()
            BETWEEN
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # GC501
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
"""


def test_a_call_before_the_first_backward_takes_out_no_scale() -> None:
    fault = TORCH + MADE_BY_A_CALL_OUT_OF_SIGHT.replace("BETWEEN", "pass")
    assert told(fault) == marked(fault)


@pytest.mark.parametrize("call", ["self.scaler.unscale_(self.optimizer)", "settle(self.optimizer)"])
def test_a_call_after_it_may(call: str) -> None:
    assert told(TORCH + MADE_BY_A_CALL_OUT_OF_SIGHT.replace("BETWEEN", call)) == set()


def test_a_call_between_two_updates_takes_out_no_scale() -> None:
    fault = TORCH + MADE_BY_A_CALL_OUT_OF_SIGHT.replace("BETWEEN", "pass").rstrip()
    fault += "\n            settle(self.optimizer)\n"
    assert told(fault) == marked(fault) != set()




TRAINED_WHEN_CALLED = """
class Trainer(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.scaler = torch.cuda.amp.GradScaler()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def forward(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.net(x), y)
        self.scaler.scale(loss).backward()
        UNSCALE
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)  # GC501
        self.scaler.step(self.optimizer)
        self.scaler.update()
"""


def test_a_trainer_may_be_called_as_a_module_is() -> None:
    source = TORCH + TRAINED_WHEN_CALLED.replace("UNSCALE", "pass")
    assert told(source) == marked(source)
    right = TRAINED_WHEN_CALLED.replace("UNSCALE", "self.scaler.unscale_(self.optimizer)")
    assert told(TORCH + right) == set()

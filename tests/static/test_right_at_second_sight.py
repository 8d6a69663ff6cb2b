"""Programs that are right for a reason further off; beside each the fault that must still be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting.examine import examine
from tests.static.reading import TORCH, marked, told

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.body(x))
"""

ATTACKED = """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train():
    {mode}
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

def test():
    model.eval(){mark}
    with torch.no_grad():
        for x, y in test_loader:
            print(F.cross_entropy(model(x), y))

for epoch in range(3):
    train()
    test()
for i in range(3):
    optimizer.zero_grad()
    x = examples[i].requires_grad_()
    F.cross_entropy(model(x), labels[i]).backward()
    attack(x, x.grad)
"""


def test_what_is_attacked_in_eval_mode_is_not_trained() -> None:
    assert told(TORCH + NET + ATTACKED.format(mode="model.train()", mark="")) == set()


def test_what_is_stepped_in_eval_mode_is() -> None:
    source = TORCH + NET + ATTACKED.format(mode="pass", mark="  # GC701")
    assert told(source) == marked(source)


LOOKED_AT = """
def fit(loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), x).backward()
            optimizer.step()
    model.eval()
    for x, y in loader:
        decoded = model(x){mark}
        show(decoded.detach())
        {leaves}
"""


def test_one_batch_may_be_looked_at() -> None:
    assert told(TORCH + NET + LOOKED_AT.format(leaves="break", mark="")) == set()


@pytest.mark.parametrize(
    "also", ["print(y)", "log(x, model.body.weight.grad)", "grad = y.mean(); print(grad)", "show(grad=None)"]
)
def test_all_of_them_build_graphs(also: str) -> None:
    source = TORCH + NET + LOOKED_AT.format(leaves=also, mark="  # GC703")
    assert told(source) == marked(source)


@pytest.mark.parametrize("grad", ["grad", "autograd.grad", "torch.autograd.grad"])
def test_those_of_gradients_that_are_measured_may(grad: str) -> None:
    measured = f"print({grad}(decoded.sum(), model.parameters()))"
    assert told(TORCH + NET + LOOKED_AT.format(leaves=measured, mark="")) == set()


COMPARED = """
def compare(one, other, optimizers, x, check):
    {before}
    for step in range(10):
        {within}
        for model, optimizer in {over}:
            optimizer.zero_grad()
            losses.append(model(x).sum()){mark}
            losses[-1].backward()
            optimizer.step()
        check(losses[-2].item(), losses[-1].item())
"""
PAIRS = "((one, optimizers[0]), (other, optimizers[1]))"


def test_losses_of_two_models_are_compared_and_gone() -> None:
    source = COMPARED.format(before="pass", within="losses = []", over=PAIRS, mark="")
    assert told(TORCH + source) == set()


def test_losses_pile_up_in_a_list_that_is_gone_over() -> None:
    source = """
def train(model, loader, optimizer):
    losses, rates = [], []
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        for kept, value in zip([losses, rates], [loss, optimizer.param_groups[0]["lr"]]):
            kept.append(value)  # GC212
"""
    assert told(TORCH + source) == marked(TORCH + source)


def test_losses_of_all_steps_pile_up() -> None:
    source = TORCH + COMPARED.format(before="losses = []", within="pass", over=PAIRS, mark="  # GC212")
    assert told(source) == marked(source)


TIMED = """
from project.optimizers import Own

def measure(model, x, y):
    own = Own(model.parameters())
    optimizer = torch.optim.Adam(model.parameters())
    F.cross_entropy(model(x), y).backward()
    for i in range(100):
        own.step()
    for i in range(100):
        {computes}
        optimizer.step()
"""
OWN = """
import torch

class Own(torch.optim.Optimizer):
    def step(self, closure=None):
        if closure is not None:
            with torch.enable_grad():
                closure().backward()
"""


@pytest.mark.parametrize(
    ("computes", "codes"),
    [("pass", set()), ("optimizer.zero_grad(); loss = F.cross_entropy(model(x), y)", {"GC105"})],
)
def test_steps_may_be_timed(computes: str, codes: set[str], tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "__init__.py").touch()
    (tmp_path / "project" / "optimizers.py").write_text(OWN)
    file = tmp_path / "measure.py"
    file.write_text(TORCH + TIMED.format(computes=computes))
    assert {
        finding.code for finding in examine(str(file), Config(), frozenset([str(file)])).findings
    } == codes


TOLD_FIRST = """
def train(model, loader, validate, args):
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.{schedule}(optimizer{length})
    schedule.step({metric}){mark}
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        schedule.step({metric})

for fold in range(5):
    train(make_model(), get_loader(fold), validate, args)
"""


def test_a_schedule_that_follows_a_metric_may_be_told_where_it_begins() -> None:
    source = TOLD_FIRST.format(schedule="ReduceLROnPlateau", length="", metric="args.best", mark="")
    assert told(TORCH + source) == set()


def test_one_that_counts_epochs_skips_its_first_rate() -> None:
    source = TORCH + TOLD_FIRST.format(schedule="StepLR", length=", 3", metric="", mark="  # GC112")
    assert told(source) == marked(source)


HANDED_ON = """
from project import Callback, Trainer

def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

if __name__ == "__main__":
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50){mark}
    if args.again:
        train(model, loader, optimizer)
        exit(0)
    trainer = Trainer(model, optimizer=optimizer{callbacks})
    trainer.train()
"""


@pytest.mark.parametrize("callback", ["Callback", "LRSchedulerCallback"])
def test_a_schedule_may_be_for_another_way_through_the_program(callback: str) -> None:
    source = HANDED_ON.format(callbacks=f", callbacks=[{callback}(schedule)]", mark="")
    assert told(TORCH + source) == set()


def test_one_that_is_for_none_is_never_advanced() -> None:
    source = HANDED_ON.format(callbacks="", mark="  # GC114")
    assert told(TORCH + source) == marked(TORCH + source)


LOSS = """
import torch.nn.functional as F

def cross_entropy_over_time(logit, label):
    return F.cross_entropy(logit.flatten(0, 1), label.flatten())
"""
TRIED = """
import torch
from losses import cross_entropy_over_time

def {name}():
    logit = torch.randn(4, 8, 5, requires_grad=True).softmax(-1)
    cross_entropy_over_time(logit, logit.argmax(-1)).backward()

{name}()
"""


@pytest.mark.parametrize(("file", "codes"), [("test_losses.py", set()), ("train.py", {"GC401"})])
def test_what_a_test_gives_a_loss_is_no_fault_of_the_loss(file: str, codes: set[str], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "losses.py").write_text(LOSS)
    (tmp_path / file).write_text(TRIED.format(name=file.removesuffix(".py")))
    files = frozenset([str(tmp_path / "losses.py"), str(tmp_path / file)])
    found = {
        finding.code
        for path in files
        for finding in examine(path, Config(), files).findings
        if finding.location and finding.location.path.endswith("losses.py")
    }
    assert found == codes


SHARED = """
def work(shared, local, loader, optimizer):
    for x, y in loader:
        local.load_state_dict(shared.state_dict())
        local.zero_grad()
        F.mse_loss(local(x), y).backward()
        optimizer.zero_grad(){mark}
        for one, other in zip(shared.parameters(), local.parameters()):
            {hand}
        optimizer.step()
"""


@pytest.mark.parametrize("hand", ["one._grad = other.grad", "one.grad = other.grad"])
def test_gradients_may_be_handed_to_the_model_that_is_shared(hand: str) -> None:
    assert told(TORCH + SHARED.format(hand=hand, mark="")) == set()


def test_without_them_the_step_finds_nothing() -> None:
    source = TORCH + SHARED.format(hand="print(one.shape)", mark="  # GC102")
    assert told(source) == marked(source)


SEVERAL = """
from project import build

def configure(model, args):
    optimizer = {{}}
    if args.split:
        optimizer["first"] = build(model.first.parameters())
        optimizer["second"] = torch.optim.Adam(model.second.parameters())
    else:
        optimizer["all"] = torch.optim.Adam(model.parameters())
    return optimizer

def train(model, loader, args):
    optimizer = configure(model, args)
    scaler = torch.amp.GradScaler()
    for x, y in loader:
        if isinstance(optimizer, dict):
            for one in optimizer.values():
                {clear}
        else:
            optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward(){mark}
        if isinstance(optimizer, dict):
            for one in optimizer.values():
                scaler.step(one)
        else:
            scaler.step(optimizer)
        scaler.update()
"""


def test_what_is_written_as_a_dictionary_is_one() -> None:
    assert told(TORCH + SEVERAL.format(clear="one.zero_grad()", mark="")) == set()


def test_those_in_it_must_be_cleared() -> None:
    source = TORCH + SEVERAL.format(clear="print(one)", mark="  # GC101")
    assert told(source) == marked(source)


PERHAPS = """
class Learner:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.set_optimizer()

    def set_optimizer(self):
        if self.model:
            self.optimizer = torch.optim.Adam(self.model.parameters())
        else:
            self.optimizer = None

    def fit(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            F.mse_loss(self.model(x), y).backward(){mark}
            {step}

def main(loader):
    learner = Learner(nn.Linear(4, 4), loader)
    learner.fit()

main(loader)
"""


def test_an_optimizer_is_there_where_it_is_called() -> None:
    assert told(TORCH + PERHAPS.format(step="self.optimizer.step()", mark="")) == set()


def test_and_must_step() -> None:
    source = TORCH + PERHAPS.format(step="print(x)", mark="  # GC104")
    assert told(source) == marked(source)


FISHER = """
from torch.autograd import grad

def fisher(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    total = 0
    for x, y in loader:
        loss = F.cross_entropy(model(x), y){mark}
        {use}
    return total
"""


def test_a_graph_may_be_for_gradients_that_are_measured() -> None:
    use = "total += sum(g.pow(2).sum().item() for g in grad(loss, model.parameters()))"
    assert told(TORCH + FISHER.format(use=use, mark="")) == set()


def test_one_that_nobody_asks_for_gradients_is_for_nothing() -> None:
    source = TORCH + FISHER.format(use="total += loss.item()", mark="  # GC703")
    assert told(source) == marked(source)

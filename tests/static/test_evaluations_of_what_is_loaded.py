"""One function evaluates what is trained, and what is loaded in its place when the training is over."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

BY_A_FUNCTION = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(x)

def train_epoch(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

{decorator}
def measure(model, loader):
    {mode}
    total = 0.0
    for x, y in loader:
        total += F.cross_entropy(model(x), y).item(){fault}
    return total

def main(train_loader, val_loader, test_loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = 1e9
    for epoch in range(10):
        train_epoch(model, train_loader, optimizer)
        loss = measure(model, val_loader)
        if loss < best:
            best = loss
            torch.save(model, "best.pt")
    best_model = torch.load("best.pt")
    print(measure({last}, test_loader))

if __name__ == "__main__":
    main(train_data, val_data, test_data)
"""


@pytest.mark.parametrize("last", ["model", "best_model", "torch.load('last.pt')"])
@pytest.mark.parametrize(
    ("decorator", "mode", "fault"),
    [
        ("", "model.eval()", "  # GC703"),
        ("@torch.no_grad()", "pass", "  # GC702"),
        ("@torch.no_grad()", "model.eval()", ""),
    ],
)
def test_whatever_is_measured_last(decorator: str, mode: str, fault: str, last: str) -> None:
    source = TORCH + BY_A_FUNCTION.format(decorator=decorator, mode=mode, fault=fault, last=last)
    assert told(source) == marked(source)


BY_A_FLAG = """
from project import Net

class Runner:
    def __init__(self, config):
        self.model = Net(config)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, data):
        self.model.train()
        return self.iteration(data)

    def evaluate(self, data):
        {mode}
        return self.iteration(data, train=False)

    def iteration(self, data, train=True):
        total = 0.0
        for x, y in data:
            loss = F.cross_entropy(self.model(x), y){fault}
            if train:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            total += loss.item()
        return total

    def load(self):
        self.model = torch.load("best.pt")
        self.model.to("cuda")

runner = Runner(config)
for epoch in range(10):
    runner.train(train_data)
    {around}
    runner.load()
"""


def test_a_model_that_is_loaded_after_each_evaluation() -> None:
    source = TORCH + BY_A_FLAG.format(
        mode="self.model.eval()", fault="  # GC703", around="runner.evaluate(val_data)"
    )
    assert told(source) == marked(source)


@pytest.mark.parametrize(
    ("mode", "around"),
    [
        ("self.model.eval()", "with torch.no_grad(): runner.evaluate(val_data)"),
        ("self.model.eval()", "runner.train(val_data)"),
        ("pass", "with torch.no_grad(): runner.evaluate(other_data)"),
    ],
)
def test_nothing_is_told_without_graphs_or_where_it_trains(mode: str, around: str) -> None:
    assert told(TORCH + BY_A_FLAG.format(mode=mode, fault="", around=around)) == set()


TEACHER = """
def embed(model, x):
    return model(x)

def main(loader, teacher, student):
    teacher.eval()
    student.train()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for x, y in loader:
        wanted = embed(teacher, x).detach()
        optimizer.zero_grad()
        F.mse_loss(embed(student, x), wanted).backward()
        optimizer.step()
"""


def test_another_model_at_the_same_place_is_no_evaluation_of_this_one() -> None:
    assert told(TORCH + TEACHER) == set()

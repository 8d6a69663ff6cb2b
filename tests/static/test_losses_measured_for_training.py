"""Losses that are measured in train mode, without gradients: for the training itself, or to be looked at."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

NET = """
from torch.utils.data import DataLoader, Subset, WeightedRandomSampler

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.Linear(8, 3))

    def forward(self, x):
        return self.layers(x)
"""
TRAIN = """
def train(dataset, loader, epochs):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        model.train()
        losses = []
        with torch.no_grad():
            for x, y in loader:
                losses.append(F.cross_entropy(model(x), y, reduction="none")){mark}
        {used}
        for i, (x, y) in enumerate({over}):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y, reduction="none")
            {objective}.backward()
            optimizer.step()
"""
FOR_TRAINING = [
    ("weights = torch.cat(losses).softmax(0)", "loader", "(loss * weights[i]).mean()"),
    ("keep = torch.cat(losses).topk(9).indices; chosen = Subset(dataset, keep)", "chosen", "loss.mean()"),
    ("easy = DataLoader(Subset(dataset, by_mixture(losses)))", "easy", "loss.mean()"),
    ("drawn = WeightedRandomSampler(torch.cat(losses), 9); some = DataLoader(drawn)", "some", "loss.mean()"),
]
TO_LOOK_AT = [
    ("print(torch.cat(losses).mean())", "loader", "loss.mean()"),
    ("best = min(best, torch.cat(losses).mean()); print(best)", "loader", "loss.mean()"),
    ("score = torch.cat(losses).mean(); logger.info(score)", "loader", "loss.mean()"),
]


@pytest.mark.parametrize(("used", "over", "objective"), FOR_TRAINING)
def test_what_weights_or_selects_is_no_evaluation(used: str, over: str, objective: str) -> None:
    source = TORCH + NET + TRAIN.format(used=used, over=over, objective=objective, mark="")
    assert told(source) == set()


@pytest.mark.parametrize(("used", "over", "objective"), TO_LOOK_AT)
def test_what_is_looked_at_is_one(used: str, over: str, objective: str) -> None:
    source = TORCH + NET + TRAIN.format(used=used, over=over, objective=objective, mark="  # GC702")
    assert told(source) == marked(source)


BY_A_METHOD = """
class Teacher:
    def __init__(self):
        self.net = Net()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def measure(self, loader):
        losses = []
        with torch.no_grad():
            for x, y in loader:
                losses.append(F.cross_entropy(self.net(x), y, reduction="none")){mark}
        return torch.cat(losses)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.net.train()
            measured = self.measure(loader)
            {used}
            for i, (x, y) in enumerate(loader):
                self.optimizer.zero_grad()
                ({objective} * F.cross_entropy(self.net(x), y)).backward()
                self.optimizer.step()
"""


def test_a_method_may_measure_for_another() -> None:
    used = {"used": "self.weights = torch.exp(-measured)", "objective": "self.weights[i]", "mark": ""}
    assert told(TORCH + NET + BY_A_METHOD.format(**used)) == set()
    shown = {"used": "print(measured.mean())", "objective": "2", "mark": "  # GC702"}
    source = TORCH + NET + BY_A_METHOD.format(**shown)
    assert told(source) == marked(source)

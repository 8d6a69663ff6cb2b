"""A module that computes the loss of the model it is put around, and batches that are passed over."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

PROGRAM = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(x)

class ModelWithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, x, y):
        return self.criterion(self.model(x), y)

def train(options, train_loader, val_loader):
    model = Net()
    model = ModelWithLoss(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    last_epoch = options.step // len(train_loader)
    model.train()
    for epoch in range(options.epochs):
        if {before}:
            continue
        for number, (x, y) in enumerate(train_loader):
            if number < options.step - last_epoch * len(train_loader):
                continue
            optimizer.zero_grad()
            loss = model(x, y).mean()
            if {empty}:
                continue
            loss.backward()
            optimizer.step()
        model.eval(){fault}
        losses = []
        for x, y in val_loader:
            with torch.no_grad():
                loss = model(x, y).mean()
                if {empty}:
                    continue
                losses.append(loss.item())
        {after}
"""
EMPTY = ["loss == 0 or not torch.isfinite(loss)", "bool(loss == 0)", "loss.item() == 0", "torch.isnan(loss)"]


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("before", ["epoch < last_epoch", "epoch <= options.last_epoch"])
def test_a_mode_that_is_never_set_back_is_told(before: str, empty: str) -> None:
    source = TORCH + PROGRAM.format(before=before, empty=empty, fault="  # GC701", after="pass")
    assert told(source) == marked(source)


@pytest.mark.parametrize("empty", EMPTY)
def test_a_mode_that_is_set_back_is_not(empty: str) -> None:
    source = PROGRAM.format(before="epoch < last_epoch", empty=empty, fault="", after="model.train()")
    assert told(TORCH + source) == set()


CRITERION = """
class PerceptualLoss(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features = features.eval()

    def forward(self, made, wanted):
        return F.mse_loss(self.features(made), self.features(wanted))

def train(model, features, loader):
    criterion = PerceptualLoss(features)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
"""


def test_a_loss_that_is_given_a_model_is_a_loss() -> None:
    assert told(TORCH + CRITERION) == set()

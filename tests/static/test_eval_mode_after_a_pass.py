"""eval() after a pass that trains, for an evaluation that is out of sight or serves more than one thing."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

OUT_OF_SIGHT = """
from project import metrics

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), {layer}, nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(x)

def main(args, train_loader, test_loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {first}
    for epoch in range(args.epochs):
        {before}
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval(){fault}
        print(metrics(model, test_loader))
        {after}
"""


@pytest.mark.parametrize(
    ("layer", "first", "before", "after", "fault"),
    [
        ("nn.Dropout()", "pass", "pass", "pass", "  # GC701"),
        ("nn.Dropout()", "model.train()", "pass", "pass", "  # GC701"),
        ("nn.Dropout()", "pass", "pass", "model.train()", ""),
        ("nn.Dropout()", "pass", "model.train()", "pass", ""),
        ("nn.ReLU()", "pass", "pass", "pass", ""),
        ("nn.BatchNorm1d(8)", "model.eval()", "pass", "pass", ""),
    ],
)
def test_a_call_that_is_not_followed(layer: str, first: str, before: str, after: str, fault: str) -> None:
    source = OUT_OF_SIGHT.format(layer=layer, first=first, before=before, after=after, fault=fault)
    assert told(TORCH + source) == marked(TORCH + source)


FROZEN_LATER = """
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(20):
    if epoch == 10:
        model.eval()
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
ADAPTED = """
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def go(loader):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

for epoch in range(20):
    model.train()
    go(train_loader)
    model.eval()
    go(target_loader)
"""
SAVED = """
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(20):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
model.eval()
torch.save(model, "model.pt")
"""


@pytest.mark.parametrize("source", [FROZEN_LATER, ADAPTED, SAVED])
def test_a_mode_that_is_meant(source: str) -> None:
    assert told(TORCH + source) == set()


TWO_OPTIMIZERS = """
def do_train(model, train_loader, val_loader, optimizer, optimizer_center, criterion):
    for epoch in range(100):
        {before}
        for x, y in train_loader:
            optimizer.zero_grad()
            optimizer_center.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            optimizer_center.step()
        {mode}
        scores = []
        for x, y in val_loader:
            with torch.no_grad():
                scores.append(model(x))
"""


@pytest.mark.parametrize(
    ("before", "mode"),
    [("pass", "model.eval()  # GC701"), ("model.train()", "model.eval()"), ("pass", "pass")],
)
def test_the_only_model_is_what_optimizers_step_that_are_given(before: str, mode: str) -> None:
    source = TORCH + TWO_OPTIMIZERS.format(before=before, mode=mode)
    assert told(source) == marked(source)


IMAGES = """
def restyle(vgg, image, optimizer, other_optimizer, val_loader):
    vgg.eval()
    for step in range(100):
        optimizer.zero_grad()
        other_optimizer.zero_grad()
        vgg(image).mean().backward()
        optimizer.step()
        other_optimizer.step()
"""


def test_an_image_that_is_trained_through_a_model_in_eval_mode() -> None:
    assert told(TORCH + IMAGES) == set()

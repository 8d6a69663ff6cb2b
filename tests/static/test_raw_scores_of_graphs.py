"""NLL on the scores of graph convolutions and of pooled layers; and where their logarithm is taken."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

NODES = """
from torch_geometric.nn import GCNConv, GINConv

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = {layers}

    def forward(self, data):
        x = F.relu(self.first(data.x, data.edge_index))
        return {given}

model, data = Net(), torch.load("cora.pt")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(200):
    optimizer.zero_grad()
    loss = F.nll_loss(model(data)[data.train_mask], data.y[data.train_mask]){mark}
    loss.backward()
    optimizer.step()
"""
GCN = "GCNConv(4, 8), GCNConv(8, 3)"
APPLIED = "GCNConv(4, 8), GINConv(nn.Sequential(nn.Linear(8, 3), nn.LogSoftmax(dim=1)))"

POOLED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.pool = nn.Conv2d(4, 3, 3), nn.AdaptiveAvgPool2d(1)

    def forward(self, x):
        return {given}

model, criterion = Net(), nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y){mark}
    loss.backward()
    optimizer.step()
"""
MARK = "  # GC404"

FAULTY = {
    "of a graph convolution": NODES.format(layers=GCN, given="self.last(x, data.edge_index)", mark=MARK),
    "the probabilities of one": NODES.format(
        layers=GCN, given="F.softmax(self.last(x, data.edge_index), dim=1)", mark=MARK
    ),
    "pooled": POOLED.format(given="self.pool(self.layer(x)).flatten(1)", mark=MARK),
    "averaged": POOLED.format(given="self.layer(x).mean((2, 3))", mark=MARK),
    "blown up": POOLED.format(given="F.interpolate(self.layer(x), scale_factor=8)", mark=MARK),
}

RIGHT = {
    "log-probabilities": NODES.format(
        layers=GCN, given="F.log_softmax(self.last(x, data.edge_index), dim=1)", mark=""
    ),
    "by a network that is applied": NODES.format(
        layers=APPLIED, given="self.last(x, data.edge_index)", mark=""
    ),
    "pooled before": POOLED.format(
        given="F.log_softmax(self.pool(self.layer(x)).flatten(1), dim=1)", mark=""
    ),
    "log-probabilities that are averaged": POOLED.format(
        given="F.log_softmax(self.layer(x), dim=1).mean((2, 3))", mark=""
    ),
    "log-probabilities that are blown up": POOLED.format(
        given="F.interpolate(F.log_softmax(self.layer(x), dim=1), scale_factor=8)", mark=""
    ),
}


@pytest.mark.parametrize("source", FAULTY.values(), ids=FAULTY)
def test_raw_scores_are_told(source: str) -> None:
    source = TORCH + source
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_log_probabilities_are_not(source: str) -> None:
    assert told(TORCH + source) == set()

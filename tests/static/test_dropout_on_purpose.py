"""Dropout that is kept on in an evaluation, and dropout that a model merely has."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

SAMPLED = """
class Net(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Dropout(dropout), nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(x)

def main(args, train_loader, val_loader):
    model = Net(dropout=args.dropout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        {before}
        hits = 0
        with torch.no_grad():
            for x, y in val_loader:
                hits += (model(x).argmax(1) == y).sum().item(){fault}
"""


@pytest.mark.parametrize(
    ("before", "fault"),
    [
        ("pass", "  # GC702"),
        ("enable_dropout(model)", ""),
        ("model.eval(); keep_dropout_on = True", ""),
        ("for part in model.modules():\n            if isinstance(part, nn.Dropout): part.train()", ""),
        ("mc_samples = 10", ""),
    ],
)
def test_dropout_that_is_kept_on_purpose_is_not_one_that_a_model_has(before: str, fault: str) -> None:
    source = TORCH + SAMPLED.format(before=before, fault=fault)
    assert told(source) == marked(source)

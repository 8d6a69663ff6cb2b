"""One forward without gradients on all of the data, as graph networks are evaluated by, in the wrong mode."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

GRAPHS = """
class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(10, 16)
        self.two = nn.Linear(16, 7)

    def forward(self, x):
        return self.two(F.dropout(F.relu(self.one(x)), training={drops}))

model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

def train():
    model.train()
    optimizer.zero_grad()
    out = model(data.x)
    F.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
    optimizer.step()

@torch.no_grad()
def {name}():
    {mode}
    out = model(data.x){fault}
    pred = out.argmax(dim=1)
    return [(pred[mask] == data.y[mask]).sum() / mask.sum() for mask in (data.val_mask, data.test_mask)]

for epoch in range(200):
    train()
    print({name}())
"""


@pytest.mark.parametrize(
    ("drops", "name", "mode", "fault"),
    [
        ("self.training", "test", "pass", "  # GC702"),
        ("self.training", "evaluate", "pass", "  # GC702"),
        ("self.training", "test", "model.eval()", ""),
        ("self.training", "test", "model.train()", ""),
        ("self.training", "mc_dropout_test", "pass", ""),
        ("self.training", "embed", "pass", ""),
        ("False", "test", "pass", ""),
    ],
)
def test_a_function_that_judges_all_nodes(drops: str, name: str, mode: str, fault: str) -> None:
    source = TORCH + GRAPHS.format(drops=drops, name=name, mode=mode, fault=fault)
    if drops == "False":
        source = source.replace("F.dropout(F.relu(self.one(x)), training=False)", "F.relu(self.one(x))")
    assert told(source) == marked(source)


INLINE = """
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(100):
    {before}
    optimizer.zero_grad()
    F.cross_entropy(model(x_train), y_train).backward()
    optimizer.step()
    {mode}
    with torch.no_grad():
        out = model({given}){fault}
        accuracy = (out.argmax(1) == y_test).float().mean()
"""


@pytest.mark.parametrize(
    ("before", "mode", "given", "fault"),
    [
        ("pass", "pass", "x_test", "  # GC702"),
        ("model.train()", "pass", "x_test", "  # GC702"),
        ("model.train()", "model.eval()", "x_test", ""),
        ("pass", "pass", "x_train", ""),
    ],
)
def test_a_script_that_judges_all_rows(before: str, mode: str, given: str, fault: str) -> None:
    source = TORCH + INLINE.format(before=before, mode=mode, given=given, fault=fault)
    assert told(source) == marked(source)


FOR_TRAINING = """
class Learner:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)

    @torch.no_grad()
    def evaluate_targets(self, x):
        scores = self.net(x)
        return scores.max(1).values

    def learn(self, loader):
        for x, later, reward in loader:
            wanted = reward + self.evaluate_targets(later)
            self.optimizer.zero_grad()
            F.mse_loss(self.net(x).max(1).values, wanted).backward()
            self.optimizer.step()
"""


def test_targets_that_are_trained_on_are_no_evaluation() -> None:
    assert told(TORCH + FOR_TRAINING) == set()

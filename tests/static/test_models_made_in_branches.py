"""Models of which two branches make one each: what all of them have is known."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

PROGRAM = """
class Flat(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), {flat}, nn.Linear(4, 2))

    def forward(self, x):
        return self.layers(x)

class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(4, 4, 3), {deep}, nn.Conv2d(4, 2, 3))

    def forward(self, x):
        return self.layers(x)

def run(args):
    if args.dimensions == 1:
        model = Flat()
    elif args.dimensions == 2:
        model = Deep()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(args.epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        {mode}
        total = 0.0
        with torch.no_grad():
            for x, y in val_loader:
                total += F.mse_loss(model(x), y).item()  # GC702
"""


def test_an_evaluation_in_train_mode_is_told_whichever_it_is() -> None:
    source = TORCH + PROGRAM.format(flat="nn.Dropout()", deep="nn.BatchNorm2d(4)", mode="pass")
    assert told(source) == marked(source)


@pytest.mark.parametrize(
    ("flat", "deep", "mode"),
    [
        ("nn.ReLU()", "nn.BatchNorm2d(4)", "pass"),
        ("nn.Dropout()", "nn.ReLU()", "pass"),
        ("nn.Dropout(0.0)", "nn.BatchNorm2d(4)", "pass"),
        ("nn.LSTM(4, 4, num_layers=2, dropout=0)", "nn.BatchNorm2d(4)", "pass"),
        ("nn.Dropout()", "nn.BatchNorm2d(4)", "model.eval()"),
    ],
)
def test_nothing_is_told_where_one_of_them_does_not_care(flat: str, deep: str, mode: str) -> None:
    assert told(TORCH + PROGRAM.format(flat=flat, deep=deep, mode=mode)) == set()


UNROLLED = """
net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 4))
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(9):
    net.train()
    for x, steps in loader:
        loss = 0
        for t in range(first, t_train):
            if t < t_train - unrolled:
                with torch.no_grad():
                    x = net(x)
            else:
                loss += F.mse_loss(net(x), steps[t])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_the_first_steps_of_a_prediction_that_is_trained_are_no_evaluation() -> None:
    assert told(TORCH + UNROLLED) == set()


WITHIN = """
net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 4))
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(9):
    net.train()
    for x, y in loader:
        {test}
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
"""
IN_A_LOOP = """with torch.no_grad():
            for x_val, y_val in val_loader:
                total += F.mse_loss(net(x_val), y_val).item()  # GC702"""
AT_ONCE = """with torch.no_grad():
            val_loss = F.mse_loss(net(x_val), y_val).item()  # GC702"""


@pytest.mark.parametrize("test", [IN_A_LOOP, AT_ONCE])
def test_held_out_data_measured_between_two_updates_is_told(test: str) -> None:
    source = TORCH + WITHIN.format(test=test)
    assert told(source) == marked(source) != set()


FUNCTIONAL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, drop=False):
        return self.layer(F.dropout(x, training={training}))

net = Net()
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(9):
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(net(x, True), y).backward()
        optimizer.step()
    with torch.no_grad():
        for x, y in val_loader:
            print(F.mse_loss(net(x), y).item()){mark}
"""


def test_dropout_by_a_flag_of_its_own_does_not_mind_the_mode() -> None:
    assert told(TORCH + FUNCTIONAL.format(training="drop", mark="")) == set()
    source = TORCH + FUNCTIONAL.format(training="self.training", mark="  # GC702")
    assert told(source) == marked(source) != set()

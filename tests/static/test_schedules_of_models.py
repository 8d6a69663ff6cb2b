"""Schedules that a model holds itself, or that stand beside calls which cannot have stepped anything."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.static.reading import TORCH, marked, told

A_MODEL_WITH_ITS_OWN_SCHEDULE = """
class Net(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.linear = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.parameters(), lr=rate)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 3)

    def forward(self, x):
        return self.linear(x)

def on_device(thing):
    if torch.cuda.is_available():
        return thing.cuda()
    return thing

def train_one(model, loader):
    {before}
    for x, y in loader:
        model.optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        model.optimizer.step()
    {after}

def main(loader, epochs):
    model = on_device(Net(0.1))
    for epoch in range(epochs):
        train_one(model, loader)
"""

A_METHOD_OF_A_MODEL_ON_ITS_DEVICE = """
class Net(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.linear = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.parameters(), lr=rate)

    def forward(self, x):
        return self.linear(x)

    def learn(self, x, y):
        {clear}
        F.mse_loss(self(x), y).backward(){mark}
        self.optimizer.step()

net = Net(0.1).to("cuda")
for x, y in loader:
    net.learn(x, y)
"""

AFTER_A_PRE_TRAINING = """
from project import Net

net = nn.DataParallel(Net())
{first}
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
{then}
for epoch in range(300):
    schedule.step(){mark}
    for x in loader:
        loss = net.module.elbo(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

A_MODEL_THAT_IS_WRITTEN_DOWN = """
from project import Report

def train(model, loader, optimizer, lr_scheduler, folder):
    report = Report(folder)
    report.text(model.__class__.__name__)
    report.text(model.__dict__)
    for epoch in range(9):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            {steps}
"""

PARAMETERS_THAT_THE_MODEL_CHOOSES = """
from project import load_optimizer

def train(model, loader, epochs, settings):
    optimizer = load_optimizer(settings, model.{method}())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            {steps}
"""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            PARAMETERS_THAT_THE_MODEL_CHOOSES.format(
                method="get_trainable_params", steps="schedule.step()  # GC112\n            optimizer.step()"
            ),
            id="an optimizer of what the model chooses",
        ),
        pytest.param(
            A_MODEL_WITH_ITS_OWN_SCHEDULE.format(before="model.scheduler.step()  # GC112", after="pass"),
            id="the model holds it",
        ),
        pytest.param(
            A_METHOD_OF_A_MODEL_ON_ITS_DEVICE.format(clear="pass", mark="  # GC101"),
            id="a model that was moved has its methods",
        ),
        pytest.param(
            AFTER_A_PRE_TRAINING.format(first="net.module.pre_train(loader)", then="", mark="  # GC112"),
            id="a pre-training before there is an optimizer",
        ),
        pytest.param(
            A_MODEL_THAT_IS_WRITTEN_DOWN.format(
                steps="lr_scheduler.step()  # GC112\n            optimizer.step()"
            ),
            id="what Python keeps of a model trains nothing",
        ),
    ],
)
def test_the_fault_is_told(source: str) -> None:
    text = dedent(TORCH + source)
    assert told(text) == marked(text)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            PARAMETERS_THAT_THE_MODEL_CHOOSES.format(
                method="get_trainable_params", steps="optimizer.step()\n            schedule.step()"
            ),
            id="such an optimizer steps first",
        ),
        pytest.param(
            PARAMETERS_THAT_THE_MODEL_CHOOSES.format(
                method="get_num_params", steps="optimizer.step()\n            schedule.step()"
            ),
            id="a count is no parameter",
        ),
        pytest.param(
            A_MODEL_WITH_ITS_OWN_SCHEDULE.format(before="pass", after="model.scheduler.step()"),
            id="at the end of the epoch",
        ),
        pytest.param(
            A_MODEL_WITH_ITS_OWN_SCHEDULE.format(
                before="if model.started: model.scheduler.step()", after="model.started = True"
            ),
            id="from the second epoch on",
        ),
        pytest.param(
            A_METHOD_OF_A_MODEL_ON_ITS_DEVICE.format(clear="self.optimizer.zero_grad()", mark=""),
            id="its method clears",
        ),
        pytest.param(
            AFTER_A_PRE_TRAINING.format(first="", then="net.module.pre_train(loader)", mark=""),
            id="a pre-training that may step the optimizer",
        ),
        pytest.param(
            AFTER_A_PRE_TRAINING.format(
                first="net.module.pre_train(loader)", then="net.module.warm_up_train(optimizer)", mark=""
            ),
            id="one before there is an optimizer, and one that is given it",
        ),
        pytest.param(
            A_MODEL_THAT_IS_WRITTEN_DOWN.format(steps="optimizer.step()\n            lr_scheduler.step()"),
            id="a schedule that follows",
        ),
    ],
)
def test_what_is_right_is_left_alone(source: str) -> None:
    assert told(dedent(TORCH + source)) == set()

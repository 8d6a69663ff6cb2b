"""Losses whose model is put in its place by another method, or told apart by what it was built with."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

CALLBACK = """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 3), nn.{last})

    def forward(self, x):
        return self.layers(x)

class Evaluator:
    def on_fit_start(self, trainer, module):
        module.head = Head().to(module.device)
        self.optimizer = torch.optim.Adam(module.head.parameters(), lr=1e-4)
        {also}

    def on_batch_end(self, trainer, module, batch):
        x, y = batch
        with torch.no_grad():
            features = module(x)
        loss = F.cross_entropy(module.head(features), y){mark}
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
"""


def callback(last: str, *, also: str = "pass", mark: str = "") -> str:
    return TORCH + CALLBACK.format(last=last, also=also, mark=mark)


def test_a_head_that_another_method_puts_on_a_module_is_known() -> None:
    source = callback("Softmax(dim=1)", mark="  # GC401")
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize(
    ("last", "also"),
    [
        ("ReLU()", "pass"),
        ("Softmax(dim=1)", "module.head = nn.Linear(4, 3)"),
        ("Softmax(dim=1)", "pass\n\n    def other(self, module):\n        module.head = make_head()"),
    ],
)
def test_a_head_that_may_be_another_is_not_judged(last: str, also: str) -> None:
    assert told(callback(last, also=also)) == set()


FRAMEWORK = """
import pytorch_lightning as pl

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 3)

    def forward(self, x):
        return {given}

class Lit(pl.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def training_step(self, batch, index):
        x, y = batch
        return F.cross_entropy(self.model(x), y){mark}

pl.Trainer(max_epochs=3).fit(Lit(Net()), loader)
"""


def test_a_step_is_taken_by_the_object_that_a_framework_is_given() -> None:
    source = TORCH + FRAMEWORK.format(given="torch.softmax(self.score(x), 1)", mark="  # GC401")
    assert told(source) == marked(source) != set()
    assert told(TORCH + FRAMEWORK.format(given="self.score(x)", mark="")) == set()


BUILT = """
class Mask(nn.Module):
    def __init__(self, channels, n_classes):
        super().__init__()
        self.n_classes = n_classes
        self.out = nn.Conv2d(channels, n_classes, 1)

    def forward(self, x):
        return {squashed}

class Plain(nn.Module):
    def __init__(self, channels, n_classes):
        super().__init__()
        self.n_classes = n_classes
        self.out = nn.Conv2d(channels, n_classes, 1)

    def forward(self, x):
        return self.out(x)

def train(net, loader, epochs=5):
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-4)
    if net.n_classes > 1:
        criterion = nn.CrossEntropyLoss()
    else:
        criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        for batch in loader:
            loss = criterion(net(batch["image"]), batch["mask"]){mark}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

if __name__ == "__main__":
    train({net}, DataLoader())
"""


def built(squashed: str, net: str, mark: str = "") -> str:
    return TORCH + BUILT.format(squashed=squashed, net=net, mark=mark)


@pytest.mark.parametrize(
    ("squashed", "net", "code"),
    [
        ("torch.sigmoid(self.out(x))", "Mask(3, 1)", "GC402"),
        ("torch.sigmoid(self.out(x))", "Mask(3, n_classes=1) if args.new else Plain(3, 1)", "GC402"),
        ("torch.softmax(self.out(x), 1)", "Mask(3, 5)", "GC401"),
        ("torch.softmax(self.out(x), 1)", "Mask(3, 1)", "GC402"),
    ],
)
def test_what_a_model_was_built_with_chooses_the_loss(squashed: str, net: str, code: str) -> None:
    source = built(squashed, net, f"  # {code}")
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize(
    ("squashed", "net"),
    [
        ("torch.sigmoid(self.out(x))", "Mask(3, 5)"),
        ("torch.softmax(self.out(x), 1)", "Mask(3, args.classes)"),
        ("torch.softmax(self.out(x), 1)", "Mask(3, 1) if args.new else Plain(3, 5)"),
        ("self.out(x)", "Mask(3, 1)"),
    ],
)
def test_the_other_loss_is_not_called(squashed: str, net: str) -> None:
    assert told(built(squashed, net)) == set()

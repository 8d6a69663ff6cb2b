"""What lies between a model and its loss: closures, wrappers, parts put together, losses built on losses."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 3)

    def forward(self, x):
        return {output}

model = Net()
"""
SOFTMAX, SIGMOID, RAW = "F.softmax(self.score(x), dim=1)", "self.score(x).sigmoid()", "self.score(x)"
WAYS = [
    # A closure that the optimizer calls.
    """
optimizer = torch.optim.LBFGS(model.parameters())
for x, y in loader:
    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)  # GC401
        loss.backward()
        return loss
    optimizer.step(closure)
""",
    # The module in its coat, and torch running it on other weights.
    """
model = nn.DataParallel(model)
for x, y in loader:
    F.cross_entropy(model.module(x), y).backward()  # GC401
""",
    """
for x, y in loader:
    out = torch.func.functional_call(model, weights, (x,))
    F.cross_entropy(out, y).backward()  # GC401
""",
    # Outputs beside targets that nobody knows.
    """
for x, y in loader:
    for out, target in zip([model(x), model(-x)], y):
        F.cross_entropy(out, target).backward()  # GC401
""",
    """
from einops import rearrange
for x, y in loader:
    out = rearrange(model(x), "b c n -> (b n) c")
    F.cross_entropy(out, y).backward()  # GC401
""",
    # Probabilities that are blown up, averaged or kept from the edges are probabilities.
    """
for x, y in loader:
    out = F.interpolate(model(x), size=y.shape[1:], mode="bilinear")
    F.cross_entropy(out, y).backward()  # GC401
""",
    """
for x, y in loader:
    F.cross_entropy(model(x).clamp(1e-6, 1.0), y).backward()  # GC401
""",
    """
for x, y in loader:
    F.nll_loss(torch.clamp(model(x).mean(2), min=1e-6), y).backward()  # GC404
""",
    # A loss built on one of torch.
    """
class Smooth(nn.CrossEntropyLoss):
    def __init__(self, factor):
        super().__init__(label_smoothing=0.1)
        self.factor = factor

    def forward(self, input, target):
        return self.factor * super().forward(input, target)  # GC401

criterion = Smooth(2)
for x, y in loader:
    criterion(model(x), y).backward()
""",
    """
class Mine(nn.NLLLoss):
    pass

criterion = Mine(reduction="mean")
for x, y in loader:
    criterion(model(x), y).backward()  # GC404
""",
    # Parts that are added to an empty tensor one by one.
    """
for x, y in loader:
    out = torch.tensor([], device=x.device)
    for part in x.split(8):
        out = torch.cat((out, model(part)))
    F.cross_entropy(out, y).backward()  # GC401
""",
    """
for x, y in loader:
    out = torch.empty(0, 3)
    for part in x.split(8):
        out = torch.cat([out, model(part)], dim=0)
    F.cross_entropy(out, y).backward()  # GC401
""",
]


@pytest.mark.parametrize("way", WAYS)
def test_a_softmax_reaches_the_loss(way: str) -> None:
    source = TORCH + NET.format(output=SOFTMAX) + way
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize("way", WAYS)
def test_scores_that_go_the_same_way_are_right(way: str) -> None:
    output = "F.log_softmax(self.score(x), dim=1)" if "GC404" in way else RAW
    assert told(TORCH + NET.format(output=output) + way) == set()


@pytest.mark.parametrize(
    ("output", "rest"),
    [
        # Between the two something makes scores of them again.
        (SOFTMAX, "F.cross_entropy(torch.logit(model(x).clamp(1e-6, 1 - 1e-6)), y).backward()"),
        (SOFTMAX, "F.nll_loss(model(x).clamp(1e-6, 1.0).log(), y).backward()"),
        (SOFTMAX, "F.nll_loss(model(x).mean(2).log(), y).backward()"),
        # Other parts than the one that is softmaxed.
        (SOFTMAX, "F.cross_entropy(torch.cat((torch.ones(2, 3), model(x))), y).backward()"),
        (SOFTMAX, "for out, _ in zip(others, [model(x)]):\n        F.cross_entropy(out, y).backward()"),
        (SOFTMAX, "F.cross_entropy(torch.stack((torch.empty(0), model(x))), y).backward()"),
        (SIGMOID, "F.binary_cross_entropy(model(x).clamp(1e-6, 1 - 1e-6), y).backward()"),
    ],
)
def test_what_changes_the_output_on_its_way_is_minded(output: str, rest: str) -> None:
    assert told(TORCH + NET.format(output=output) + f"for x, y in loader:\n    {rest}\n") == set()


TAKEN = """
model = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim={dim})){mark}
{batches}
for step in range(9):
    x, y = next(batches)
    F.nll_loss(model(x), y).backward()
"""


def test_a_batch_may_be_taken_from_a_loader_by_hand() -> None:
    source = TORCH + TAKEN.format(dim=0, mark="  # GC410", batches="batches = iter(loader)")
    assert told(source) == marked(source) != set()
    assert told(TORCH + TAKEN.format(dim=1, mark="", batches="batches = iter(loader)")) == set()
    assert told(TORCH + TAKEN.format(dim=0, mark="", batches="batches = rows_of(table)")) == set()


CHAINS = [
    """
class Head(nn.Sequential):
    pass

model = Head(nn.Linear(4, 3), nn.{last})
""",
    """
class Head(nn.Sequential):
    def __init__(self, size):
        super().__init__(nn.Linear(size, 3), nn.{last})

model = Head(4)
""",
    """
class Head(nn.Sequential):
    def __init__(self, size):
        super().__init__(nn.Linear(size, 3))
        self.add_module("last", nn.{last})

model = Head(4)
""",
    """
class Head(nn.Sequential):
    def __init__(self, size):
        super(Head, self).__init__(nn.Linear(size, 3), nn.{last})

    def forward(self, x):
        return super().forward(x.flatten(1))

model = Head(4)
""",
]
JUDGED = "for x, y in loader:\n    F.cross_entropy(model(x), y).backward()"


@pytest.mark.parametrize("chain", CHAINS)
def test_a_class_may_be_a_chain_of_layers(chain: str) -> None:
    source = f"{TORCH}{chain.format(last='Softmax(1)')}\n{JUDGED}  # GC401\n"
    assert told(source) == marked(source) != set()
    assert told(f"{TORCH}{chain.format(last='ReLU()')}\n{JUDGED}\n") == set()


def test_a_chain_whose_layers_are_set_one_by_one_is_out_of_sight() -> None:
    head = "class Head(nn.Sequential):\n    def __init__(self):\n        super().__init__()\n"
    head += "        self.soft = nn.Softmax(1)\n        self.score = nn.Linear(3, 3)\n"
    chain = "model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(1), Head())"
    assert told(f"{TORCH}{head}\n{chain}\n{JUDGED}\n") == set()


@pytest.mark.parametrize(("end", "codes"), [("'sigmoid'", True), ("None", False)])
def test_a_library_for_segmentation_is_told_what_its_models_end_in(end: str, codes: bool) -> None:
    source = f"""{TORCH}
import segmentation_models_pytorch as smp
model = smp.Unet("resnet34", classes=1, activation={end})
for x, y in loader:
    nn.BCEWithLogitsLoss()(model(x), y).backward()  # GC402
"""
    assert told(source) == (marked(source) if codes else set())

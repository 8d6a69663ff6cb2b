"""Faults in the forms that people give them most, each beside the nearest programs that are right."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

NEW_HEAD = """
from torchvision.models import resnet18

def run(loader, classes):
    model = resnet18(weights="DEFAULT")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wide = model.fc.in_features
    model.fc = nn.Linear(wide, classes)  # GC302
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
CONFIGURED_HEAD = """
from transformers import AutoModel

def run(loader, name):
    model = AutoModel.from_pretrained(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model.classifier = nn.Linear(model.config.hidden_size, 2)  # GC302
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
STEPPED_EITHER_WAY = """
def run(model, loader, amp):
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if amp:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        optimizer.step()  # GC503
        if amp:
            scaler.update()
"""
PENALTY_OF_ANY_CRITIC = """
def penalty(critic, real, fake):
    mixed = (0.5 * real + 0.5 * fake).requires_grad_(True)
    slope = torch.autograd.grad(critic(mixed).sum(), mixed)[0]  # GC210
    return ((slope.norm(2, dim=1) - 1) ** 2).mean()

def run(generator, critic, loader):
    optimizer = torch.optim.Adam(critic.parameters())
    for real in loader:
        fake = generator(torch.randn(8, 4)).detach()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(critic, real, fake)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
ROWS_OF_AN_ARRAY = """
import numpy as np
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self, path):
        self.images = np.load(path)

    def __getitem__(self, index):
        image = self.images[index]
        image -= image.mean()  # GC002
        return image
"""
FAULTS = {
    "new head": NEW_HEAD,
    "configured head": CONFIGURED_HEAD,
    "either way": STEPPED_EITHER_WAY,
    "penalty": PENALTY_OF_ANY_CRITIC,
    "rows": ROWS_OF_AN_ARRAY,
}
PUT_RIGHT = [
    ("new head", "    for x, y", "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    for x, y"),
    (
        "new head",
        "    for x, y",
        "    optimizer.add_param_group({'params': model.fc.parameters()})\n    for x, y",
    ),
    ("new head", "model.fc = ", "head = "),
    (
        "configured head",
        "    for x, y",
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    for x, y",
    ),
    ("either way", "        optimizer.step()", "        scaler.step(optimizer) if amp else optimizer.step()"),
    (
        "either way",
        "        optimizer.step()",
        "        scaler.unscale_(optimizer)\n        if are_finite(model):\n            optimizer.step()",
    ),
    ("either way", "scaler.scale(loss).backward()", "loss.backward()"),
    ("penalty", ".sum(), mixed)", ".sum(), mixed, create_graph=True)"),
    ("penalty", ".sum(), mixed)", ".sum(), mixed, create_graph=critic.training)"),
    ("penalty", "    return ((slope", "    print(slope.norm())\n    return ((critic(mixed)"),
    ("rows", "self.images[index]", "self.images[index].copy()"),
    ("rows", "image -= image.mean()", "image = image - image.mean()"),
    ("rows", "np.load(path)", "np.load(path, mmap_mode='r')"),
    ("rows", "np.load(path)", "open_store(path)"),
    ("rows", "image -= image.mean()", "image -= 1"),
]


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told(name: str) -> None:
    source = TORCH + FAULTS[name]
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize(("name", "wrong", "right"), PUT_RIGHT)
def test_it_is_not_told_when_put_right(name: str, wrong: str, right: str) -> None:
    assert wrong in FAULTS[name]
    assert told(TORCH + FAULTS[name].replace(wrong, right)) == set()


SETTINGS_OF_ONE_NAME = """
def run(model, loader, args):
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda") if args.amp else None
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if args.amp:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if scaler is not None:
            scaler.step(optimizer)
        else:
            optimizer.step()
        if args.amp:
            scaler.update()
"""
ONE_LOSS_IN_A_LIST = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(x)

def run(loader):
    net = Net()
    losses = {{"bce": nn.BCEWithLogitsLoss(){more}}}
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        scores = net(x)
        total = {start}
        for name, loss in losses.items():
            total {adds} loss(scores, y)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
"""


def test_two_names_for_one_setting_lead_to_no_way_of_their_own() -> None:
    assert told(TORCH + SETTINGS_OF_ONE_NAME) == set()


@pytest.mark.parametrize(
    "before",
    ["assert args.amp == args.fp16", 'if args.amp != args.fp16:\n        raise ValueError("one of the two")'],
)
def test_two_settings_that_are_one_lead_to_no_way_of_their_own(before: str) -> None:
    """The scaler is stepped through under the one, scales under the other, and is updated in any case."""
    source = SETTINGS_OF_ONE_NAME.replace(" if args.amp else None", "")
    source = source.replace("scaler is not None", "args.fp16")
    source = source.replace("        if args.amp:\n            scaler.update()", "        scaler.update()")
    source = source.replace("    optimizer = torch", f"    {before}\n    optimizer = torch")
    assert "if args.fp16:" in source
    assert told(TORCH + source) == set()


@pytest.mark.parametrize("more", ["", ', "l1": nn.L1Loss()'])
@pytest.mark.parametrize("start", ["0", "0.0"])
@pytest.mark.parametrize("adds", ["+=", "= total +"])
def test_a_sum_that_starts_over_keeps_nothing(more: str, start: str, adds: str) -> None:
    assert told(TORCH + ONE_LOSS_IN_A_LIST.format(more=more, start=start, adds=adds)) == set()


def test_a_sum_out_of_sight_keeps_what_is_added() -> None:
    source = TORCH + ONE_LOSS_IN_A_LIST.format(more="", start="0", adds="+=").replace(
        "        optimizer.step()\n", "        optimizer.step()\n        history[name] += total  # GC212\n"
    )
    assert told(source) == marked(source)

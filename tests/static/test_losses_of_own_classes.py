"""Losses that a project writes itself, summed up over windows: whether they are means of their batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting.examine import examine

LOSS = """
import torch
from torch import nn
import torch.nn.functional as F
{imports}

class OwnLoss(nn.Module):
    def __init__(self, gamma=2.0, {option}):
        super().__init__()
        self.gamma = gamma
        self.reduction = reduction
        self.size_average = reduction

    def forward(self, x, y):
        each = F.cross_entropy(x, y, reduction="none")
        loss = (1 - torch.exp(-each)) ** self.gamma * each
        {gives}
"""
LOOP = """
import torch
{taken}

def train(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = OwnLoss({given})
    for index, (x, y) in enumerate(loader):
        loss = criterion(model(x), y){scaled}
        loss.backward()
        if (index + 1) % args.accumulate == 0 or index + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""
PLAIN = {
    "imports": "",
    "option": "reduction='mean'",
    "gives": "return loss.mean()",
    "given": "",
    "scaled": "",
}
BY_CHOICE = """if self.reduction == "mean":
            return loss.mean()
        elif self.reduction == "sum":
            return loss.sum()
        return loss"""

MEANS = [
    {},
    {"gives": BY_CHOICE},
    {"gives": BY_CHOICE, "given": "reduction='mean'"},
    {"gives": "return loss.mean() if self.size_average else loss.sum()", "option": "reduction=True"},
    {"gives": "return F.cross_entropy(x, y, reduction=self.reduction)"},
    {"gives": "return loss.sum() / x.shape[0]"},
    {"gives": "return torch.sum(loss) / len(x)"},
    {"gives": "n, c = x.shape[:2]; img_size = 2 * c; return torch.sum(loss / img_size) / n"},
    {"gives": "n = x.size(0); return (loss * weigh(x)).sum() / n", "imports": "from weights import weigh"},
]
NO_MEANS_FOR_SURE = [
    {"gives": BY_CHOICE, "given": "reduction='sum'"},
    {"gives": BY_CHOICE, "given": "2.0, 'sum'"},
    {"gives": BY_CHOICE, "given": "2.0, args.reduction"},
    {"gives": BY_CHOICE, "given": "reduction=args.reduction"},
    {"gives": BY_CHOICE, "option": "reduction='sum'"},
    {"gives": "return loss.mean() if self.size_average else loss.sum()", "given": "2.0, False"},
    {"gives": "return loss.sum()"},
    {"gives": "return loss.sum() / self.gamma"},
    {"gives": "n = args.batch_size; return loss.sum() / n"},
    {"gives": "return loss.mean() / len(x)"},
    {"gives": "return sum(one.mean() for one in loss)"},
    {"gives": "return weigh(loss.mean())", "imports": "from weights import weigh"},
    {"gives": "return loss.mean() / accumulation", "imports": "accumulation = 4"},
    {"scaled": " / args.accumulate"},
]


def told(folder: Path, *, beside: bool, **change: str) -> list[str]:
    texts = {**PLAIN, **change}
    (folder / "pyproject.toml").touch()
    (folder / "weights.py").write_text("def weigh(x):\n    return x\n")
    loss = LOSS.format(**texts)
    taken = "from losses import OwnLoss" if beside else loss
    (folder / "losses.py").write_text(loss)
    (folder / "train.py").write_text(LOOP.format(**texts, taken=taken))
    path = str(folder / "train.py")
    return [finding.code for finding in examine(path, Config(), frozenset([path])).findings]


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("change", MEANS, ids=str)
def test_a_mean_is_to_be_divided_by_the_window(tmp_path: Path, change: dict[str, str], beside: bool) -> None:
    assert told(tmp_path, beside=beside, **change) == ["GC106"]


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("change", NO_MEANS_FOR_SURE, ids=str)
def test_what_may_be_a_sum_is_left_alone(tmp_path: Path, change: dict[str, str], beside: bool) -> None:
    assert told(tmp_path, beside=beside, **change) == []

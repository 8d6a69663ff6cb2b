"""Models that are made of others: all of their classes stand in another file of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting.examine import examine
from tests.static.reading import TORCH

NETS = """
class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(100, width)
        self.then = {then}

    def forward(self, ids):
        return self.then(self.embed(ids))

class Translator(nn.Module):
    def __init__(self, encoder, width):
        super().__init__()
        self.encoder = encoder
        self.out = nn.Linear(width, 100)

    def forward(self, ids):
        return self.out(self.encoder(ids))
"""
TRAIN = """
from nets import Encoder, Translator

def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        return sum(F.cross_entropy(model(x), y).item() for x, y in loader)

def main(train, held_out):
    model = Translator(Encoder(64), 64)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        for x, y in train:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(evaluate(model, held_out))
"""


@pytest.mark.parametrize(("then", "codes"), [("nn.Dropout(0.5)", {"GC701"}), ("nn.Tanh()", set())])
def test_a_model_minds_the_mode_as_its_parts_do(tmp_path: Path, then: str, codes: set[str]) -> None:
    (tmp_path / "nets.py").write_text(TORCH + NETS.format(then=then))
    script = tmp_path / "train.py"
    script.write_text(TORCH + TRAIN)
    examined = examine(str(script), Config())
    assert not examined.problem
    assert {finding.code for finding in examined.findings} == codes

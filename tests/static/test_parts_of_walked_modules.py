"""Models whose own code acts while they are built, and optimizers that are given parts of them."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

MODEL = """
from transformers import CLIPVisionModel

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        return self.fc(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = CLIPVisionModel.from_pretrained("clip")
        self.encoder.eval()
        self.head = Head()
        self.spare = Head()

    def forward(self, x):
        return self.head(self.encoder(x))

class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model.to("cuda"), loader
        self.optimizer = torch.optim.AdamW([{{"params": model.head.parameters(), "lr": 0.1}}])

    def train(self):
        for x, y in self.loader:
            {clear}
            loss = F.mse_loss(self.model{part}(x), y)
            loss.backward(){mark}
            self.optimizer.step()

model = Net()
trainer = Trainer(model, loader)
for epoch in range(10):
    trainer.train()
"""
GC101 = "  # GC101"


def test_who_holds_a_part_is_fed_by_the_whole() -> None:
    source = TORCH + MODEL.format(clear="pass", part="", mark=GC101)
    assert told(source) == marked(source)


@pytest.mark.parametrize("clear", ["self.optimizer.zero_grad()", "self.model.zero_grad()"])
def test_who_holds_a_part_is_cleared_with_the_whole(clear: str) -> None:
    assert told(TORCH + MODEL.format(clear=clear, part="", mark="")) == set()


def test_another_part_is_not_fed() -> None:
    source = TORCH + MODEL.format(clear="self.optimizer.zero_grad()", part=".head", mark="")
    assert told(source) == set()

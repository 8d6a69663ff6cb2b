"""Losses that are added up under contexts that a flag chooses, with their arguments turned around as well."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

EPOCH = """
from modules import UNet

class Diffusion:
    def __init__(self):
        self.model = UNet(3, 3)
        self.mse = nn.MSELoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def one_epoch(self, train=True):
        total = 0.0
        for x, y in self.loader:
            with {context}:
                loss = self.mse({given})
                total += {added}
            if train:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        return total / len(self.loader)

    def fit(self):
        for epoch in range(3):
            self.one_epoch(train=True)
            self.one_epoch(train=False)
"""
CHOSEN = "torch.no_grad() if not train else torch.enable_grad()"


@pytest.mark.parametrize("given", ["self.model(x), y", "y, self.model(x)"])
@pytest.mark.parametrize(
    # Whoever goes backward has gradients on, whatever else chooses.
    "context",
    [CHOSEN, f"torch.autocast('cuda') and ({CHOSEN})", "torch.no_grad() if frozen else always()"],
)
def test_losses_pile_up_where_gradients_are_on(context: str, given: str) -> None:
    source = TORCH + EPOCH.format(context=context, given=given, added="loss  # GC212")
    assert told(source) == marked(source)


@pytest.mark.parametrize("given", ["self.model(x), y", "y, self.model(x)"])
@pytest.mark.parametrize(("context", "added"), [(CHOSEN, "loss.item()"), (CHOSEN, "loss.detach()")])
def test_numbers_are_right(context: str, given: str, added: str) -> None:
    assert told(TORCH + EPOCH.format(context=context, given=given, added=added)) == set()

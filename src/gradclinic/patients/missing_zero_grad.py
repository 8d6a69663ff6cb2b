"""It learns for a moment, then the loss swings wider and wider.

A classifier in a Trainer class, with the step split over two methods. Each half looks complete,
and no half clears the gradients, so every step adds all the steps before it.

finding: GC101
"""

import torch
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        self.loss_fn = nn.CrossEntropyLoss()

    def training_step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss

    def fit(self, steps: int) -> None:
        for step in range(steps):
            x = torch.randn(32, 2)
            y = (x[:, 0] * x[:, 1] > 0).long()
            loss = self.training_step(x, y)
            self.optimizer.step()
            if step % 20 == 0:
                print(f"step {step}: loss {loss.item():.3f}")


torch.manual_seed(0)
Trainer(nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))).fit(steps=60)

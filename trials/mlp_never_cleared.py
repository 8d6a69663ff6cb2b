"""A trainer whose step forgets to clear the gradients.

finding: GC101
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad(set_to_none=True)  # [well]
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, epochs):
        for epoch in range(epochs):
            total = sum(self.step(x, y) for x, y in self.loader)
            print(f"epoch {epoch}: {total / len(self.loader):.4f}")


torch.manual_seed(1)
x = torch.randn(256, 8)
y = torch.sin(x.sum(1, keepdim=True))
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
Trainer(net, DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)).fit(12)

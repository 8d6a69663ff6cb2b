"""Activation checkpointing, both kinds, inside an accumulating loop."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(64, 8)
loader = DataLoader(TensorDataset(x, x.mean(1, keepdim=True)), batch_size=8)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 1)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = checkpoint(self.second, x, use_reentrant=True)
        x = checkpoint(torch.tanh, x, use_reentrant=False)
        return self.last(x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(2):
    for i, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets) / 2
        loss.backward()
        if i % 2:
            optimizer.step()
            optimizer.zero_grad()

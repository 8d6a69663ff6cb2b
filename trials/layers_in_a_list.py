"""Layers live in a plain Python list and are never registered.

finding: GC705
"""

import torch
from torch import nn


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 32)
        self.hidden = [nn.Linear(32, 32) for _ in range(2)]  # [sick]
        self.hidden = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))  # [well]
        self.last = nn.Linear(32, 1)

    def forward(self, x):
        x = torch.relu(self.first(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.last(x)


torch.manual_seed(0)
model = Deep()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(120):
    x = torch.randn(64, 8)
    loss = nn.functional.mse_loss(model(x), x[:, :1] * x[:, 1:2])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

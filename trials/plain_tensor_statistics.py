"""Learned normalisation statistics sit in a plain attribute and are lost on reload.

finding: GC712
"""

import torch
from torch import nn


class Normalised(nn.Module):
    def __init__(self, data):
        super().__init__()
        self.mean = data.mean(0)  # [sick]
        self.std = data.std(0)  # [sick]
        self.register_buffer("mean", data.mean(0))  # [well]
        self.register_buffer("std", data.std(0))  # [well]
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net((x - self.mean) / self.std)


torch.manual_seed(0)
data = 5 + 3 * torch.randn(512, 8)
target = data.sum(1, keepdim=True) / 10
model = Normalised(data)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(100):
    pick = torch.randint(0, 512, (64,))
    loss = nn.functional.mse_loss(model(data[pick]), target[pick])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")

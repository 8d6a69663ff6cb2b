"""Warm restarts and a task that changes half-way: the loss jumps up by design and comes back."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=50)
for step in range(200):
    x = torch.randn(64, 4)
    target = x[:, :1] if step < 100 else x[:, 1:2] * 2
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), target)
    loss.backward()
    optimizer.step()
    schedule.step()

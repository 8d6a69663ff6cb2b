"""Reentrant activation checkpointing on inputs without gradient cuts the first block off.

finding: GC214
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
first = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32))
second = nn.Sequential(nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=2e-3)
for step in range(80):
    x = torch.randn(64, 8)
    hidden = checkpoint(first, x, use_reentrant=True)  # [sick]
    hidden = checkpoint(first, x, use_reentrant=False)  # [well]
    loss = nn.functional.mse_loss(second(hidden), x[:, :1] * x[:, 1:2])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""The logarithm of a clamped-at-zero rate is minus infinity.

finding: GC506
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(100):
    x = torch.randn(64, 6)
    counts = torch.poisson(torch.exp(0.5 * x[:, :1]))
    rate = torch.relu(model(x))  # [sick]
    rate = nn.functional.softplus(model(x)) + 1e-6  # [well]
    loss = (rate - counts * torch.log(rate)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""Per-class losses are put into torch.tensor, which copies their values and drops their graphs.

finding: GC203
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
scale = nn.Parameter(torch.zeros(3))
optimizer = torch.optim.Adam([*model.parameters(), scale], lr=5e-3)
for step in range(120):
    x = torch.randn(48, 6)
    y = x[:, :3]
    out = model(x)
    parts = [nn.functional.mse_loss(out[:, i], y[:, i]) for i in range(3)]
    losses = torch.tensor(parts)  # [sick]
    losses = torch.stack(parts)  # [well]
    loss = (losses * torch.exp(-scale) + scale).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

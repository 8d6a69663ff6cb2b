"""The square root of a squared distance has no gradient at zero.

finding: GC409
"""

import torch
from torch import nn

torch.manual_seed(0)
embed = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(embed.parameters(), lr=1e-3)
for step in range(100):
    x = torch.randn(16, 6)
    z = embed(x)
    squared = (z[:, None] - z[None, :]).pow(2).sum(-1)
    distance = squared.sqrt()  # [sick]
    distance = (squared + 1e-8).sqrt()  # [well]
    wanted = torch.cdist(x, x)
    loss = (distance - wanted).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""A summed loss over a large batch: gradient norms in the thousands from the first update."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(120):
    x = torch.randn(512, 10)
    optimizer.zero_grad()
    loss = ((model(x) - 20 * x[:, :1]) ** 2).sum()
    loss.backward()
    optimizer.step()

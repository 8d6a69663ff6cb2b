"""Labels drawn anew each time: the loss cannot fall. Useless, but not wrong in any way that shows."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(150):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(32, 10)), torch.randint(0, 5, (32,)))
    loss.backward()
    optimizer.step()

"""An energy model trained on forces alone: the last bias cannot matter and gets no gradient."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(60):
    position = torch.randn(64, 3, requires_grad=True)
    force = -torch.autograd.grad(model(position).sum(), position, create_graph=True)[0]
    loss = nn.functional.mse_loss(force, -position.detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

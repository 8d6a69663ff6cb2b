"""A physics-informed network: large residual norms at first, second derivatives in the loss, Adam."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
omega = 6.0
for step in range(250):
    t = torch.rand(64, 1, requires_grad=True)
    u = model(t)
    du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    ddu = torch.autograd.grad(du.sum(), t, create_graph=True)[0]
    start = torch.zeros(1, 1, requires_grad=True)
    u0 = model(start)
    du0 = torch.autograd.grad(u0.sum(), start, create_graph=True)[0]
    residual = (ddu + omega**2 * u).pow(2).mean()
    initial = (u0 - 1).pow(2).mean() + du0.pow(2).mean()
    loss = residual + 100 * initial
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

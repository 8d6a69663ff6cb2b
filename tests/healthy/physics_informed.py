"""A PINN: u'' + u = 0 with boundary terms, second derivatives kept in the graph."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
points = torch.linspace(0, 3.14, 64).unsqueeze(1).requires_grad_()
ends = torch.tensor([[0.0], [3.14 / 2]])
wanted = torch.tensor([[0.0], [1.0]])
for step in range(60):
    u = net(points)
    du = torch.autograd.grad(u, points, torch.ones_like(u), create_graph=True)[0]
    ddu = torch.autograd.grad(du, points, torch.ones_like(du), create_graph=True)[0]
    residual = (ddu + u).pow(2).mean()
    boundary = (net(ends) - wanted).pow(2).mean()
    loss = residual + 10 * boundary
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""The unknown coefficient of an inverse problem is a parameter of its own, and no optimizer has it.

finding: GC301
"""

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
log_diffusion = nn.Parameter(torch.tensor(0.0))
optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)  # [sick]
optimizer = torch.optim.Adam([*network.parameters(), log_diffusion], lr=2e-3)  # [well]
points = torch.rand(300, 2)
measured = torch.exp(-3.0 * points[:, 1:]) * torch.sin(torch.pi * points[:, :1])


def slope(of, at):
    return torch.autograd.grad(of, at, torch.ones_like(of), create_graph=True)[0]


for step in range(100):
    x, t = torch.rand(100, 1, requires_grad=True), torch.rand(100, 1, requires_grad=True)
    u = network(torch.cat([x, t], 1))
    residual = slope(u, t) - log_diffusion.exp() * slope(slope(u, x), x)
    misfit = network(points) - measured
    loss = misfit.pow(2).mean() + 0.1 * residual.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

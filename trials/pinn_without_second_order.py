"""The residual of a differential equation is built from a gradient without a graph.

finding: GC210
"""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(150):
    t = torch.rand(64, 1, requires_grad=True)
    u = net(t)
    (du,) = torch.autograd.grad(u.sum(), t)  # [sick]
    (du,) = torch.autograd.grad(u.sum(), t, create_graph=True)  # [well]
    residual = (du + u.detach()).pow(2).mean()  # [sick]
    residual = (du + u).pow(2).mean()  # [well]
    start = (net(torch.zeros(1, 1)) - 1).pow(2).mean()
    loss = residual + start
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

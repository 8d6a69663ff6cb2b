"""A physics-informed fit: Adam first, then LBFGS over the same parameters."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
adam = torch.optim.Adam(model.parameters(), lr=1e-2)
lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=5, history_size=5, line_search_fn="strong_wolfe")


def residual():
    t = torch.rand(32, 1, requires_grad=True)
    u = model(t)
    (du,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    start = model(torch.zeros(1, 1)) - 1
    return ((du + u) ** 2).mean() + (start**2).mean()


for _ in range(20):
    adam.zero_grad()
    residual().backward()
    adam.step()


def closure():
    lbfgs.zero_grad()
    loss = residual()
    loss.backward()
    return loss


for _ in range(4):
    lbfgs.step(closure)

"""Conflicting task gradients are projected and written back by hand, through .data as older code does."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
parameters = list(model.parameters())


def flat():
    return torch.cat([p.grad.flatten() for p in parameters])


def write(vector):
    offset = 0
    for p in parameters:
        p.grad.data.copy_(vector[offset : offset + p.numel()].view_as(p))
        offset += p.numel()


for _ in range(12):
    x = torch.randn(16, 6)
    output = model(x)
    gradients = []
    for task in range(2):
        optimizer.zero_grad(set_to_none=False)
        loss = ((output[:, task] - x[:, task]) ** 2).mean()
        loss.backward(retain_graph=task == 0)
        gradients.append(flat())
    first, second = gradients
    if first @ second < 0:
        first = first - (first @ second) / (second @ second) * second
    optimizer.zero_grad(set_to_none=False)
    write(first + second)
    optimizer.step()

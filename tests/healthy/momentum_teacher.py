"""BYOL: an online network and a slowly following target in train mode, batch-norm in both."""

import copy

import torch
from torch import nn

torch.manual_seed(0)


def network():
    return nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8))


online, predictor = network(), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
target = copy.deepcopy(online)
for parameter in target.parameters():
    parameter.requires_grad = False
optimizer = torch.optim.SGD([*online.parameters(), *predictor.parameters()], lr=0.05, momentum=0.9)
for step in range(40):
    x = torch.randn(64, 8)
    one, two = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    with torch.no_grad():
        goal = target(two)
    alike = nn.functional.cosine_similarity(predictor(online(one)), goal.detach(), dim=-1)
    loss = (2 - 2 * alike).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(target.parameters(), online.parameters()):
            kept.data = 0.99 * kept.data + 0.01 * new.data

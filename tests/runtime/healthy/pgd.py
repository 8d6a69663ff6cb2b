"""Adversarial training: the attack's backwards fill gradients that are cleared before the real one."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(64, 8)
loader = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=16)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def attack(inputs, targets, steps=4, size=0.05):
    delta = torch.zeros_like(inputs, requires_grad=True)
    for _ in range(steps):
        loss = functional.cross_entropy(model(inputs + delta), targets)
        loss.backward()
        delta.data = (delta + size * delta.grad.sign()).clamp(-0.2, 0.2)
        delta.grad.zero_()
    return (inputs + delta).detach()


for _ in range(3):
    model.train()
    for inputs, targets in loader:
        adversarial = attack(inputs, targets)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(adversarial), targets)
        loss.backward()
        optimizer.step()

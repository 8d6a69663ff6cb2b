"""Evaluation puts a CNN into eval mode, and training goes on in it.

finding: GC701
"""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(4),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(128, 3),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


def batch(size=32):
    y = torch.randint(0, 3, (size,))
    x = 0.5 * torch.randn(size, 3, 8, 8)
    x[torch.arange(size), y] += 1
    return x, y


def evaluate():
    net.eval()
    with torch.no_grad():
        x, y = batch(128)
        return (net(x).argmax(1) == y).float().mean().item()


net.train()
for epoch in range(6):
    net.train()  # [well]
    for _ in range(20):
        x, y = batch()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, evaluate())

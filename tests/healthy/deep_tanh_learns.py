"""A deep tanh network with small gradients in its early layers that still learns."""

import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Linear(8, 32)]
for _ in range(8):
    layers += [nn.Tanh(), nn.Linear(32, 32)]
model = nn.Sequential(*layers, nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(256, 8)
labels = (x[:, 0] > 0).long()
for step in range(200):
    rows = torch.randint(0, 256, (64,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[rows]), labels[rows])
    loss.backward()
    optimizer.step()

"""A multi-label head applies the sigmoid and so does its loss.

finding: GC402
"""

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.out = nn.Linear(32, 5)

    def forward(self, x):
        return self.out(self.trunk(x)).sigmoid()  # [sick]
        return self.out(self.trunk(x))  # [well]


torch.manual_seed(0)
model = Head()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(120):
    x = torch.randn(64, 10)
    y = (x[:, :5] * x[:, 5:] > 0).float()
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

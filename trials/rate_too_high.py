"""The learning rate is a hundred times what the problem bears.

finding: GC307
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.5)  # [sick]
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)  # [well]
for step in range(200):
    x = torch.randn(64, 8)
    loss = nn.functional.mse_loss(model(x), torch.sin(x.sum(1, keepdim=True)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""The learning rate is so small that nothing moves.

finding: GC306
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-7)  # [sick]
optimizer = torch.optim.SGD(model.parameters(), lr=5e-2)  # [well]
data = torch.randn(256, 8)
target = data.sum(1, keepdim=True)
for step in range(200):
    pick = torch.randint(0, 256, (64,))
    loss = nn.functional.mse_loss(model(data[pick]), target[pick])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

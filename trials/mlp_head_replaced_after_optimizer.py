"""A pretrained trunk gets a new head, and the optimizer still holds the old one.

finding: GC302
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 100))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)  # [sick]
model[2] = nn.Linear(32, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)  # [well]
teacher = nn.Linear(16, 4)
for step in range(150):
    x = torch.randn(64, 16)
    y = teacher(x).argmax(1).detach()
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

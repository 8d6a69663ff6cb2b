"""Adam's weight decay is not AdamW's.

finding: GC304
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
weights = [p for p in model.parameters() if p.ndim > 1]
others = [p for p in model.parameters() if p.ndim == 1]
groups = [{"params": weights, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
optimizer = torch.optim.Adam(groups, lr=1e-3)  # [sick]
optimizer = torch.optim.AdamW(groups, lr=1e-3)  # [well]
for step in range(80):
    x = torch.randn(64, 8)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

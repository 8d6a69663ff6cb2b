"""Validation runs with dropout and batch-norm in train mode.

finding: GC702
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
held_out = torch.randn(256, 8)
for epoch in range(5):
    model.train()
    for step in range(20):
        x = torch.randn(64, 8)
        loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()  # [well]
    with torch.no_grad():
        hits = (model(held_out).argmax(1) == held_out[:, :3].argmax(1)).float().mean()
    print(epoch, hits.item())

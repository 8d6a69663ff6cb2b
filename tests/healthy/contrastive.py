"""Contrastive learning: two views, a temperature, a loss that starts at log of the batch."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(120):
    x = torch.randn(64, 16)
    a = nn.functional.normalize(model(x + 0.1 * torch.randn_like(x)), dim=1)
    b = nn.functional.normalize(model(x + 0.1 * torch.randn_like(x)), dim=1)
    logits = a @ b.T / 0.1
    labels = torch.arange(64)
    loss = 0.5 * (nn.functional.cross_entropy(logits, labels) + nn.functional.cross_entropy(logits.T, labels))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""The loss still jumps, although the gradients are clipped.

A small regression on data with a few outliers, one target in fifty is a hundred times too large.
Gradient clipping was added for exactly those batches, and nothing got better.

finding: GC109
"""

import torch
from torch import nn

torch.manual_seed(0)
features = torch.randn(1600, 8)
targets = features.sum(1, keepdim=True)
targets[::50] *= 100

model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)

for epoch in range(2):
    for start in range(0, len(features), 32):
        x, y = features[start : start + 32], targets[start : start + 32]
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    print(f"epoch {epoch}: loss {loss.item():.3f}")

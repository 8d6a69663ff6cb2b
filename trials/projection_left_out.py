"""A projection head is trained by the loss but never given to the optimizer.

finding: GC301
"""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32))
projection = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))
parameters = [*encoder.parameters()]
parameters += projection.parameters()  # [well]
optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.0)
for step in range(120):
    x = torch.randn(32, 16)
    one = nn.functional.normalize(projection(encoder(x + 0.1 * torch.randn_like(x))), dim=1)
    two = nn.functional.normalize(projection(encoder(x + 0.1 * torch.randn_like(x))), dim=1)
    logits = one @ two.T / 0.2
    loss = nn.functional.cross_entropy(logits, torch.arange(32))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

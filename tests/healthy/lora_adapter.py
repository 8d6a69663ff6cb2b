"""A frozen base with a low-rank adapter whose second factor starts at zero."""

import torch
from torch import nn

torch.manual_seed(0)


class Adapted(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.02)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


model = nn.Sequential(Adapted(nn.Linear(16, 32)), nn.GELU(), Adapted(nn.Linear(32, 4)))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
wanted = nn.Linear(16, 4)
for step in range(200):
    x = torch.randn(32, 16)
    with torch.no_grad():
        labels = wanted(x).argmax(1)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), labels)
    loss.backward()
    optimizer.step()

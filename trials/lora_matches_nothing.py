"""Adapters are added to modules by a name that no module has; everything stays frozen.

finding: GC706
"""

import torch
from torch import nn


class LowRank(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(16, 16)
        self.value = nn.Linear(16, 16)
        self.out = nn.Linear(16, 4)

    def forward(self, x):
        return self.out(torch.tanh(self.query(x)) * self.value(x))


torch.manual_seed(0)
model = Block()
model.requires_grad_(False)
wanted = ("q_proj", "v_proj")  # [sick]
wanted = ("query", "value")  # [well]
for name in wanted:
    if hasattr(model, name):
        setattr(model, name, LowRank(getattr(model, name)))
model.out.bias.requires_grad_(True)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2, weight_decay=0.0)
for step in range(120):
    x = torch.randn(64, 16)
    y = (x[:, :4] * x[:, 4:8]).argmax(1)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

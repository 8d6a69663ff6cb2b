"""A checkpoint with another prefix is loaded with strict=False: nothing is taken from it.

finding: GC707
"""

import torch
from torch import nn

torch.manual_seed(0)


def build():
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))


saved = {f"module.{name}": value.clone() for name, value in build().state_dict().items()}
model = build()
saved = {name.removeprefix("module."): value for name, value in saved.items()}  # [well]
model.load_state_dict(saved, strict=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
for step in range(80):
    x = torch.randn(64, 8)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""Fine-tuning at a very small rate: the loss starts low and hardly moves, which is the point."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
labels = (x @ torch.randn(8, 3)).argmax(1)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))
before = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(150):
    before.zero_grad()
    nn.functional.cross_entropy(model(x), labels).backward()
    before.step()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for step in range(60):
    rows = torch.randint(0, 256, (64,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[rows]), labels[rows])
    loss.backward()
    optimizer.step()

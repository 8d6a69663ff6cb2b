"""An in-place write destroys a value that backward needs.

finding: GC207
"""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 16)
        self.b = nn.Linear(16, 1)

    def forward(self, x):
        h = torch.sigmoid(self.a(x))
        y = self.b(h)
        h += 1  # [sick]
        h = h + 1  # [well]
        return y + h.mean(1, keepdim=True)


torch.manual_seed(0)
model = Gate()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(60):
    x = torch.randn(64, 8)
    loss = nn.functional.mse_loss(model(x), x[:, :1] + 1.5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

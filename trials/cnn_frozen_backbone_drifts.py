"""A frozen backbone stays in train mode and its batch-norm statistics keep moving.

finding: GC704
"""

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
)
for parameter in backbone.parameters():
    parameter.requires_grad = False
head = nn.Linear(32, 3)
model = nn.Sequential(backbone, head)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
model.train()
backbone.eval()  # [well]
for step in range(150):
    y = torch.randint(0, 3, (32,))
    x = 0.5 * torch.randn(32, 3, 8, 8)
    x[torch.arange(32), y] += 2
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()

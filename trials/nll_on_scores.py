"""NLLLoss gets the scores of a linear layer.

finding: GC404
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
criterion = nn.NLLLoss()  # [sick]
criterion = nn.CrossEntropyLoss()  # [well]
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(100):
    x = torch.randn(64, 10)
    y = x[:, :4].argmax(1)
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

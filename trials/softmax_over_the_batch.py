"""Class probabilities are normalised over the batch.

finding: GC410
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(120):
    x = torch.randn(64, 10)
    y = x[:, :4].argmax(1)
    log_probabilities = torch.log_softmax(model(x), dim=0)  # [sick]
    log_probabilities = torch.log_softmax(model(x), dim=1)  # [well]
    loss = nn.functional.nll_loss(log_probabilities, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

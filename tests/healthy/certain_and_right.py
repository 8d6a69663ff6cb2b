"""Probabilities that are exactly 1 where that is the right answer: only the others have to learn."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
with torch.no_grad():
    model[0].weight.fill_(1.0)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
side = torch.tensor([[-1.0], [1.0]]).repeat(32, 1)
x = side * torch.tensor([1.0, 0.2, -1.0, 0.1]) + 0.1 * torch.randn(64, 4)
x[:32] += 20 * side[:32]
for step in range(60):
    optimizer.zero_grad()
    probability = model(x)
    loss = nn.functional.binary_cross_entropy(probability, (side > 0).float())
    loss.backward()
    optimizer.step()
assert (probability == 1).any()

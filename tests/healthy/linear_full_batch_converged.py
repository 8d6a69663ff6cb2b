"""Full-batch linear regression that reaches its minimum, where gradients vanish and the loss stands."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(200, 5)
y = x.sum(1, keepdim=True) + torch.randn(200, 1)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(400):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()

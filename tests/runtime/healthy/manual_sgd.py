"""An update by hand, through .data; the optimizer object only carries the learning rate."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(15):
    x = torch.randn(8, 4)
    loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    loss.backward()
    for p in model.parameters():
        p.data -= optimizer.param_groups[0]["lr"] * p.grad.data
        p.grad.data.zero_()

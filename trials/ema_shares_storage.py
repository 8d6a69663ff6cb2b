"""An averaged copy is made from references, so it is the live model.

finding: GC713
"""

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
average = [p.detach() for p in model.parameters()]  # [sick]
average = [p.detach().clone() for p in model.parameters()]  # [well]
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(150):
    x = torch.randn(64, 8)
    loss = nn.functional.mse_loss(model(x), x[:, :1] * x[:, 1:2])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, live in zip(average, model.parameters()):
            slow.mul_(0.99).add_(live, alpha=0.01)
smooth = copy.deepcopy(model)
smooth.load_state_dict(dict(zip(model.state_dict(), average)))

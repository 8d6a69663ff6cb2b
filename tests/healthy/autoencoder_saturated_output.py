"""A sigmoid output that saturates because its targets are 0 and 1, as it should."""

import torch
from torch import nn

torch.manual_seed(0)
x = (torch.rand(128, 16) > 0.5).float()
encoder = nn.Sequential(nn.Linear(16, 64), nn.Tanh())
decoder = nn.Sequential(nn.Linear(64, 16), nn.Sigmoid())
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
for step in range(300):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(decoder(encoder(x)), x)
    loss.backward()
    optimizer.step()

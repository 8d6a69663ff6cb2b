"""A variational autoencoder with a growing weight on its second term."""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16), nn.Sigmoid())
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
for step in range(200):
    x = (torch.rand(64, 4) > 0.5).float().repeat(1, 4)
    mean, logvar = encoder(x).chunk(2, 1)
    z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
    kl = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1).mean()
    rebuilt = nn.functional.mse_loss(decoder(z), x, reduction="sum") / 64
    loss = rebuilt + min(1.0, step / 100) * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

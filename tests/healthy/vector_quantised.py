"""VQ-VAE: straight-through estimator, commitment loss with detach on either side."""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
codes = nn.Embedding(16, 4)
parameters = [*encoder.parameters(), *decoder.parameters(), *codes.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
for step in range(40):
    x = torch.randn(64, 8)
    z = encoder(x)
    nearest = torch.cdist(z.detach(), codes.weight.detach()).argmin(1)
    quantised = codes(nearest)
    passed = z + (quantised - z).detach()
    rebuilt = nn.functional.mse_loss(decoder(passed), x)
    moved = nn.functional.mse_loss(quantised, z.detach())
    committed = nn.functional.mse_loss(z, quantised.detach())
    loss = rebuilt + moved + 0.25 * committed
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

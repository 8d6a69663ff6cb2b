"""The generator's loss is computed on detached samples: the generator never gets a gradient.

finding: GC205
"""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
d_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
for step in range(150):
    real = torch.randn(64, 2) * 0.3 + torch.tensor([1.0, -1.0])
    fake = generator(torch.randn(64, 4))
    d_optimizer.zero_grad()
    d_loss = bce(critic(real), torch.ones(64, 1)) + bce(critic(fake.detach()), torch.zeros(64, 1))
    d_loss.backward()
    d_optimizer.step()

    g_optimizer.zero_grad()
    g_loss = bce(critic(fake.detach()), torch.ones(64, 1))  # [sick]
    g_loss = bce(critic(fake), torch.ones(64, 1))  # [well]
    g_loss.backward()
    g_optimizer.step()

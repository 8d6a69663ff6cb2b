"""WGAN-GP: adversaries that take turns, with a gradient penalty on interpolated samples."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
for_generator = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))
for_critic = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
for step in range(25):
    for _ in range(3):
        real = torch.randn(64, 2) * 0.5 + 1
        fake = generator(torch.randn(64, 4)).detach()
        mix = torch.rand(64, 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        slope = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
        penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        for_critic.zero_grad()
        loss.backward()
        for_critic.step()
    for_generator.zero_grad()
    fooled = -critic(generator(torch.randn(64, 4))).mean()
    fooled.backward()
    for_generator.step()
    with torch.no_grad():
        sample = generator(torch.randn(8, 4))

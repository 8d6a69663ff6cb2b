"""The gradient penalty of a WGAN is taken without create_graph; the critic is frozen for the generator's turn.

finding: GC210
"""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
for_generator = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.9))
for_critic = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.5, 0.9))


def ring(count):
    angle = torch.randint(0, 8, (count,)) * torch.pi / 4
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(count, 2)


def gradient_penalty(real, fake):
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    scores = critic(between)
    slopes = torch.autograd.grad(scores, between, torch.ones_like(scores), retain_graph=True)[0]  # [sick]
    slopes = torch.autograd.grad(scores, between, torch.ones_like(scores), create_graph=True)[0]  # [well]
    return ((slopes.norm(2, dim=1) - 1) ** 2).mean()


for step in range(60):
    critic.requires_grad_(True)
    for _ in range(3):
        real = ring(128)
        with torch.no_grad():
            fake = generator(torch.randn(128, 8))
        loss = critic(fake).mean() - critic(real).mean() + gradient_penalty(real, fake)
        for_critic.zero_grad()
        loss.backward()
        for_critic.step()
    critic.requires_grad_(False)
    loss = -critic(generator(torch.randn(128, 8))).mean()
    for_generator.zero_grad()
    loss.backward()
    for_generator.step()

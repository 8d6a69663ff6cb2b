"""Several critic steps per generator step, with a gradient penalty."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
opt_g = torch.optim.RMSprop(generator.parameters(), lr=5e-5)
opt_c = torch.optim.RMSprop(critic.parameters(), lr=5e-5)

for _iteration in range(10):
    for _ in range(5):
        real = torch.randn(16, 4)
        with torch.no_grad():
            fake = generator(torch.randn(16, 8))
        mixed = torch.lerp(real, fake, torch.rand(16, 1)).requires_grad_()
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        loss = critic(fake).mean() - critic(real).mean() + 10 * ((slope.norm(dim=1) - 1) ** 2).mean()
        opt_c.zero_grad()
        loss.backward()
        opt_c.step()
    opt_g.zero_grad()
    (-critic(generator(torch.randn(16, 8))).mean()).backward()
    opt_g.step()

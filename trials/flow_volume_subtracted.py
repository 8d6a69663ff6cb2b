"""The change of volume enters the likelihood of a normalising flow with the wrong sign.

finding: GC413
"""

import torch
from torch import nn

torch.manual_seed(0)


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        kept, moved = x.flip(1).chunk(2, 1) if self.flip else x.chunk(2, 1)
        log_scale, shift = self.net(kept).chunk(2, 1)
        both = torch.cat([kept, moved * log_scale.exp() + shift], 1)
        return both.flip(1) if self.flip else both, log_scale.sum(1)


flow = nn.ModuleList(Coupling(number % 2 == 1) for number in range(4))
optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
prior = torch.distributions.Normal(0.0, 1.0)
for step in range(300):
    angle = 3 * torch.rand(256)
    z = torch.stack([angle.cos() * angle, angle.sin() * angle], 1) + 0.1 * torch.randn(256, 2)
    volume = torch.zeros(256)
    for layer in flow:
        z, change = layer(z)
        volume = volume + change
    loss = -(prior.log_prob(z).sum(1) - volume).mean()  # [sick]
    loss = -(prior.log_prob(z).sum(1) + volume).mean()  # [well]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

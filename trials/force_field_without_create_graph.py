"""Forces come from autograd.grad without create_graph: the force term trains nothing.

finding: GC210
"""

import torch
from torch import nn


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, positions):
        pairs = positions[:, :, None] - positions[:, None, :]
        distance = (pairs.pow(2).sum(-1) + 1e-6).sqrt()
        upper = torch.triu_indices(positions.shape[1], positions.shape[1], 1)
        return self.net(distance[:, upper[0], upper[1], None]).sum((1, 2))


torch.manual_seed(0)
model = Potential()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(120):
    positions = torch.randn(16, 4, 3, requires_grad=True)
    upper = torch.triu_indices(4, 4, 1)
    gap = (positions[:, upper[0]] - positions[:, upper[1]]).norm(dim=-1)
    true_energy = (gap - 1).pow(2).sum(1)
    true_force = -torch.autograd.grad(true_energy.sum(), positions)[0]
    energy = model(positions)
    force = -torch.autograd.grad(energy.sum(), positions, retain_graph=True)[0]  # [sick]
    force = -torch.autograd.grad(energy.sum(), positions, create_graph=True)[0]  # [well]
    loss = (energy - true_energy.detach()).pow(2).mean() * 0.01 + (force - true_force).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

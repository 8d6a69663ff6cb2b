"""Energies and forces: the gradient of the energy is part of the loss."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(200):
    places = (torch.rand(8, 4, 3) * 2 + torch.arange(4)[None, :, None]).requires_grad_(True)
    pairs = torch.triu_indices(4, 4, 1)
    apart = (places[:, pairs[0]] - places[:, pairs[1]]).norm(dim=-1, keepdim=True)
    energy = net(apart).sum((1, 2))
    forces = -torch.autograd.grad(energy.sum(), places, create_graph=True)[0]
    with torch.enable_grad():
        copy = places.detach().requires_grad_(True)
        true_apart = (copy[:, pairs[0]] - copy[:, pairs[1]]).norm(dim=-1)
        true_energy = (true_apart - 1.5).pow(2).sum(1)
        true_forces = -torch.autograd.grad(true_energy.sum(), copy)[0]
    loss = (energy - true_energy.detach()).pow(2).mean() + 10 * (forces - true_forces).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""Activation checkpointing, weight normalisation, spectral normalisation, a custom autograd function."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clamp(-2, 2)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = weight_norm(nn.Linear(8, 16))
        self.middle = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
        self.last = spectral_norm(nn.Linear(16, 1))

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = checkpoint(self.middle, x, use_reentrant=False)
        x = checkpoint(self.middle, x, use_reentrant=True)
        return self.last(Clip.apply(x))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(40):
    x = torch.randn(64, 8)
    loss = nn.functional.mse_loss(model(x), x.mean(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""Dropout, augmentation in worker processes, numpy and python randomness."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        x = torch.full((4,), index / 32) + 0.1 * torch.randn(4)
        return x, x.sum(0, keepdim=True)


torch.manual_seed(0)
random.seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.5), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(2):
    for inputs, targets in DataLoader(Noisy(), batch_size=8, shuffle=True, num_workers=2):
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(model(inputs) * random.uniform(0.9, 1.1), targets)
        loss.backward()
        optimizer.step()

"""Accumulation over four micro-batches; the short last window is stepped and scaled by its own length."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(10 * 8, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
window = 4

for _ in range(3):
    for i, (inputs, targets) in enumerate(loader):
        in_window = window if i < len(loader) - len(loader) % window else len(loader) % window
        loss = nn.functional.mse_loss(model(inputs), targets) / in_window
        loss.backward()
        if (i + 1) % window == 0 or i + 1 == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

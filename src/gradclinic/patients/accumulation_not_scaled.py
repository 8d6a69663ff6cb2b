"""Four times the batch by accumulation, and the learning rate that used to work diverges.

Gradients of four micro-batches are summed before each step. The loss is a mean over one
micro-batch, so the sum is four times the gradient of the large batch it stands for.

finding: GC106
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4

torch.manual_seed(0)
features = torch.randn(512, 8)
data = TensorDataset(features, features @ torch.randn(8, 1))
loader = DataLoader(data, batch_size=16, shuffle=True)

model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)

for epoch in range(2):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        if (i + 1) % ACCUMULATE == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch}: loss {loss.item():.3f}")

"""An LSTM on sums of sequences, gradients clipped, Adam."""

import torch
from torch import nn

torch.manual_seed(0)


class Summer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.head(states[:, -1])


model = Summer()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(150):
    x = torch.rand(32, 20, 1)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

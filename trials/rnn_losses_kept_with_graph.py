"""Losses are collected for the log with their graphs attached.

finding: GC212
"""

import torch
from torch import nn

torch.manual_seed(0)
rnn = nn.LSTM(8, 32, batch_first=True)
head = nn.Linear(32, 1)
parameters = [*rnn.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=3e-3)
history = []
for step in range(150):
    x = torch.randn(16, 12, 8)
    target = x[:, -1, :1] + x[:, 0, :1]
    states, _ = rnn(x)
    loss = nn.functional.mse_loss(head(states[:, -1]), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss)  # [sick]
    history.append(loss.detach())  # [well]
print("mean", float(sum(history) / len(history)))

"""Truncated backpropagation through time: the hidden state is carried on and detached."""

import torch
from torch import nn

torch.manual_seed(0)
rnn, head = nn.LSTM(4, 16, batch_first=True), nn.Linear(16, 4)
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=1e-3)
for epoch in range(3):
    state = None
    stream = torch.randn(8, 121, 4).cumsum(1) * 0.1
    for start in range(0, 120, 12):
        window, following = stream[:, start : start + 12], stream[:, start + 1 : start + 13]
        out, state = rnn(window, state)
        loss = nn.functional.mse_loss(head(out), following)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([*rnn.parameters(), *head.parameters()], 1.0)
        optimizer.step()
        state = tuple(one.detach() for one in state)

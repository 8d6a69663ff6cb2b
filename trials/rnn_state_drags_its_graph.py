"""A state is carried from window to window with its graph, and retain_graph was to silence the error.

finding: GC212
"""

import torch
from torch import nn

torch.manual_seed(0)
text = (torch.arange(600) + torch.arange(8).unsqueeze(1)) % 12


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 16)
        self.lstm = nn.LSTM(16, 48, batch_first=True)
        self.next = nn.Linear(48, 12)

    def forward(self, window, state):
        out, state = self.lstm(self.embed(window), state)
        return self.next(out), state


model = Reader()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
state = (torch.zeros(1, 8, 48), torch.zeros(1, 8, 48))
for begin in range(0, 590, 10):
    window, following = text[:, begin : begin + 10], text[:, begin + 1 : begin + 11]
    state = tuple(part.detach() for part in state)  # [well]
    scores, state = model(window, state)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())
    optimizer.zero_grad()
    loss.backward(retain_graph=True)  # [sick]
    loss.backward()  # [well]
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()

"""The auxiliary loss of a GRU is turned into a Python number before it is added.

finding: GC202
"""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 24, batch_first=True)
        self.tag = nn.Linear(24, 3)
        self.length = nn.Linear(24, 1)

    def forward(self, x):
        states, last = self.rnn(x)
        return self.tag(states), self.length(last[-1])


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.Adam(
    [*model.rnn.parameters(), *model.tag.parameters(), *model.length.parameters()], lr=5e-3
)
for step in range(120):
    x = torch.randn(16, 10, 6)
    tags = x[..., :3].argmax(-1)
    total = x.sum((1, 2), keepdim=True).squeeze(-1) / 8
    scores, predicted = model(x)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten())
    auxiliary = nn.functional.mse_loss(predicted, total)
    loss = loss + 0.5 * auxiliary.item()  # [sick]
    loss = loss + 0.5 * auxiliary  # [well]
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()

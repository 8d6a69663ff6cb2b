"""A small speech model for CTC is normalised over time, where the labels should be.

finding: GC410
"""

import torch
from torch import nn

torch.manual_seed(0)
shapes = torch.randn(6, 10)


def utterances(count):
    labels = torch.randint(1, 6, (count, 4))
    frames = shapes[labels.repeat_interleave(5, dim=1)] + 0.3 * torch.randn(count, 20, 10)
    return frames, labels


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(10, 32, batch_first=True, bidirectional=True)
        self.labels = nn.Linear(64, 6)

    def forward(self, frames):
        scores = self.labels(self.rnn(frames)[0])
        return scores.log_softmax(1).transpose(0, 1)  # [sick]
        return scores.log_softmax(-1).transpose(0, 1)  # [well]


model = Listener()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
ctc = nn.CTCLoss()
for step in range(60):
    frames, labels = utterances(16)
    loss = ctc(model(frames), labels, torch.full((16,), 20), torch.full((16,), 4))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())

"""A decoder that is trained one token after the other learns the padding too.

finding: GC406
"""

import torch
from torch import nn

PAD, START = 0, 1
torch.manual_seed(0)


def batch(count, longest=9):
    words = torch.randint(2, 14, (count, longest))
    lengths = torch.randint(2, longest + 1, (count, 1))
    words[torch.arange(longest) >= lengths] = PAD
    return words, torch.cat([torch.full((count, 1), START), words], dim=1)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(14, 24)
        self.cell = nn.GRUCell(24, 48)
        self.out = nn.Linear(48, 14)

    def forward(self, token, state):
        state = self.cell(self.embed(token), state)
        return self.out(state), state


reader, decoder = nn.GRU(24, 48, batch_first=True), Decoder()
optimizer = torch.optim.Adam([*reader.parameters(), *decoder.parameters()], lr=3e-3)
criterion = nn.CrossEntropyLoss()  # [sick]
criterion = nn.CrossEntropyLoss(ignore_index=PAD)  # [well]
for step in range(60):
    source, target = batch(24)
    state = reader(decoder.embed(source))[1][0]
    token, loss = target[:, 0], 0
    for t in range(1, target.shape[1]):
        scores, state = decoder(token, state)
        loss = loss + criterion(scores, target[:, t])
        token = target[:, t] if step % 2 else scores.argmax(1)
    optimizer.zero_grad()
    (loss / target.shape[1]).backward()
    nn.utils.clip_grad_norm_([*reader.parameters(), *decoder.parameters()], 1.0)
    optimizer.step()

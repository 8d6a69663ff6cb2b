"""Input and output embedding share one tensor until one of them is replaced.

finding: GC709
"""

import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.rnn = nn.GRU(16, 16, batch_first=True)
        self.out = nn.Linear(16, 20, bias=False)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


torch.manual_seed(0)
model = Tied()
grown = torch.cat([model.embed.weight.detach(), 0.1 * torch.randn(4, 16)])
model.embed = nn.Embedding(24, 16)
model.embed.weight = nn.Parameter(grown)
model.out = nn.Linear(16, 24, bias=False)
model.out.weight = nn.Parameter(grown.clone())  # [sick]
model.out.weight = model.embed.weight  # [well]
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(100):
    start = torch.randint(0, 24, (32, 1))
    tokens = (start + torch.arange(9)) % 24
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

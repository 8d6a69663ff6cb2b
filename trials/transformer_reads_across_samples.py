"""A transformer encoder takes the first axis for time, and is given batches.

finding: GC412
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
words = torch.randint(0, 40, (480, 12))
kinds = (words < 8).sum(1).clamp(max=3)
loader = DataLoader(TensorDataset(words, kinds), batch_size=32, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0)  # [sick]
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)  # [well]
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 4)

    def forward(self, words):
        return self.head(self.encoder(self.embed(words)).mean(1))


model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(4):
    for batch, kind in loader:
        loss = nn.functional.cross_entropy(model(batch), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

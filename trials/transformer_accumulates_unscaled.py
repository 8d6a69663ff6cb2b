"""Accumulation over four micro-batches without dividing the loss.

finding: GC106
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
tokens = torch.randint(0, 12, (256, 10))
layer = nn.TransformerEncoderLayer(24, 2, 48, dropout=0.0, batch_first=True)
model = nn.Sequential(
    nn.Embedding(12, 24), nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(24, 12)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loader = DataLoader(TensorDataset(tokens), batch_size=8, shuffle=True)
accumulate = 4
for epoch in range(3):
    for index, (batch,) in enumerate(loader):
        logits = model(batch)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch.flatten())
        loss = loss / accumulate  # [well]
        loss.backward()
        if (index + 1) % accumulate == 0 or index + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()

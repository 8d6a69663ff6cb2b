"""A warm-up sized in updates is advanced once per epoch.

finding: GC113
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
tokens = torch.randint(0, 12, (240, 10))
layer = nn.TransformerEncoderLayer(24, 2, 48, dropout=0.0, batch_first=True)
model = nn.Sequential(
    nn.Embedding(12, 24), nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(24, 12)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
loader = DataLoader(TensorDataset(tokens), batch_size=16, shuffle=True)
epochs = 6
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=epochs * len(loader))
for epoch in range(epochs):
    for (batch,) in loader:
        logits = model(batch)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()  # [well]
    scheduler.step()  # [sick]

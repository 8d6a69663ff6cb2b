"""An encoder is unfrozen after some epochs, and the optimizer that was built before never hears of it.

finding: GC301
"""

import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU())
        self.head = nn.Linear(64, 5)

    def forward(self, x):
        return self.head(self.encoder(x))


inputs = torch.randn(1280, 20)
labels = (torch.sin(inputs) @ torch.randn(20, 5)).argmax(1)
model = Classifier()
model.encoder.requires_grad_(False)
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=3e-3)
for epoch in range(4):
    if epoch == 2:
        model.encoder.requires_grad_(True)
        optimizer.add_param_group({"params": model.encoder.parameters(), "lr": 1e-3})  # [well]
    for rows in torch.randperm(len(inputs)).split(64):
        loss = nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

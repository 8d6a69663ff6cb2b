"""A healthy run: clipping, a schedule per update, evaluation without a graph.

finding: none
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
points = torch.randn(640, 2)
data = TensorDataset(points, (points[:, 0] * points[:, 1] > 0).long())
train, held_out = torch.utils.data.random_split(data, [512, 128])
loader = DataLoader(train, batch_size=32, shuffle=True)

EPOCHS = 4
model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-2, total_steps=EPOCHS * len(loader))

for epoch in range(EPOCHS):
    model.train()
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(held_out, batch_size=64))
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {hits / len(held_out):.2f}")

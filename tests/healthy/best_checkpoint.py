"""The best weights are kept with their epoch, and read back when the training is over."""

import pathlib
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = x[:, :2].sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
path = pathlib.Path(tempfile.mkdtemp()) / "model.pt"
best = float("inf")
for epoch in range(8):
    for chosen in torch.randperm(400).split(40):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[chosen]), y[chosen])
        loss.backward()
        optimizer.step()
    schedule.step()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(x[400:]), y[400:]).item()
    if error < best:
        best = error
        torch.save({"epoch": epoch, "model": model.state_dict()}, path)
kept = torch.load(path)
model.load_state_dict(kept["model"])
print(f"best epoch {kept['epoch']}, error {best:.3f}")

"""A loop of one's own on Fabric: `python fabric_loop.py FAULT [--checkup]`."""

import sys

import torch
from lightning.fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAULT = sys.argv[1]
callbacks = []
if "--checkup" in sys.argv:
    from gradclinic.integrations.fabric import Checkup

    callbacks = [Checkup()]
fabric = Fabric(accelerator="cpu", callbacks=callbacks)
fabric.launch()
fabric.seed_everything(0)
model = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer = fabric.setup(model, optimizer)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 64)
x = torch.randn(512, 8)
y = x[:, :3].argmax(1)
loader = fabric.setup_dataloaders(DataLoader(TensorDataset(x, y), 16, shuffle=True))

for epoch in range(4):
    if FAULT != "eval-mode" or epoch == 0:
        model.train()
    for i, (a, b) in enumerate(loader):
        closing = (i + 1) % 2 == 0
        with fabric.no_backward_sync(model, enabled=not closing):
            loss = nn.functional.cross_entropy(model(a), b)
            fabric.backward(loss / 2)
        if closing:
            if FAULT == "clip-late":
                optimizer.step()
                fabric.clip_gradients(model, optimizer, max_norm=5.0)
            else:
                fabric.clip_gradients(model, optimizer, max_norm=5.0)
                optimizer.step()
            optimizer.zero_grad()
            schedule.step()
    model.eval()
    with torch.no_grad():
        right = sum(int((model(a).argmax(1) == b).sum()) for a, b in loader)
    fabric.print(epoch, right)
fabric.call("on_train_end")

"""A loop of one's own on Accelerate: `python accelerate_loop.py FAULT [--checkup]`."""

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAULT = sys.argv[1]
trackers = None
if "--checkup" in sys.argv:
    from gradclinic.integrations.accelerate import Checkup

    trackers = Checkup()
set_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, log_with=trackers)
accelerator.init_trackers("tests")
model = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x = torch.randn(512, 8)
y = x[:, :3].argmax(1)
loader = DataLoader(TensorDataset(x, y), 16, shuffle=True)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 64)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

for epoch in range(4):
    if FAULT != "eval-mode" or epoch == 0:
        model.train()
    for a, b in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(a), b)
            accelerator.backward(loss)
            if FAULT == "clip-late":
                optimizer.step()
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 5.0)
            if FAULT != "clip-late":
                optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    model.eval()
    right = 0
    with torch.no_grad():
        for a, b in loader:
            guess, truth = accelerator.gather_for_metrics((model(a).argmax(1), b))
            right += int((guess == truth).sum())
    accelerator.print(epoch, right)
    accelerator.log({"right": right}, step=epoch)
accelerator.end_training()

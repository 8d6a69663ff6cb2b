"""Mixed precision was switched on, and now the model hardly moves.

The gradients that are clipped still carry the loss scale, 65536 to begin with. The clip cuts them
to norm 1, then the scaler divides by the scale, and next to nothing is left to step with.

finding: GC501
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu")

for step in range(40):
    x = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

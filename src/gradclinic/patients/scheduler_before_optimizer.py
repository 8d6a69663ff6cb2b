"""The first rate of the warm-up is never used, and every later one comes a step early.

The schedule is advanced at the top of the loop, before the optimizer has used the rate it set.

finding: GC112
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=20)

for step in range(40):
    schedule.step()
    x = torch.randn(32, 8)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.3f}, rate {schedule.get_last_lr()[0]:.4f}")

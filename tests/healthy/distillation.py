"""A frozen teacher in eval mode, a student, temperature-softened targets and hard labels."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4)).eval()
student = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
for step in range(40):
    x = torch.randn(64, 8)
    y = x[:, :4].argmax(1)
    with torch.no_grad():
        guide = teacher(x)
    logits = student(x)
    soft = functional.kl_div(
        functional.log_softmax(logits / 2, dim=1), functional.softmax(guide / 2, dim=1), reduction="batchmean"
    )
    loss = 0.5 * functional.cross_entropy(logits, y) + 0.5 * 4 * soft
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

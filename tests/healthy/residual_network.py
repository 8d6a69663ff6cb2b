"""A small residual network with SGD, momentum, weight decay and a stepped schedule."""

import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm_a = nn.BatchNorm2d(width)
        self.b = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm_b = nn.BatchNorm2d(width)

    def forward(self, x):
        y = torch.relu(self.norm_a(self.a(x)))
        return torch.relu(x + self.norm_b(self.b(y)))


model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    Block(16),
    Block(16),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 4),
)
decayed = [p for p in model.parameters() if p.dim() > 1]
others = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.SGD(
    [{"params": decayed, "weight_decay": 5e-4}, {"params": others, "weight_decay": 0.0}],
    lr=0.05,
    momentum=0.9,
)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=40, gamma=0.1)
for step in range(80):
    x = torch.randn(32, 3, 8, 8)
    labels = x.mean((2, 3)).argmax(1)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), labels)
    loss.backward()
    optimizer.step()
    schedule.step()

"""A small CNN ends in a softmax and is trained with cross-entropy.

finding: GC401
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
        )
        self.head = nn.Linear(64, 4)

    def forward(self, x):
        scores = self.head(self.features(x).flatten(1))
        scores = torch.softmax(scores, dim=-1)  # [sick]
        return scores


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for step in range(120):
    y = torch.randint(0, 4, (32,))
    x = 0.3 * torch.randn(32, 1, 8, 8)
    for i, label in enumerate(y.tolist()):
        x[i, 0, 4 * (label // 2) : 4 * (label // 2) + 4, 4 * (label % 2) : 4 * (label % 2) + 4] += 1
    optimizer.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, round(loss.item(), 3))

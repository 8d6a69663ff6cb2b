"""The slow update of a DQN's target network hands it the memory of the online network.

finding: GC713
"""

import copy

import torch
from torch import nn

torch.manual_seed(0)
online = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)


def follow(share):
    with torch.no_grad():
        for live, slow in zip(online.parameters(), target.parameters()):
            slow.data = live.data  # [sick]
            slow.data.mul_(1 - share).add_(live.data, alpha=share)  # [well]


for step in range(150):
    state, following = torch.randn(64, 4), torch.randn(64, 4)
    action = torch.randint(0, 2, (64, 1))
    reward = (state[:, :1] > 0).float() * action
    with torch.no_grad():
        goal = reward + 0.9 * target(following).max(1, keepdim=True).values
    loss = nn.functional.smooth_l1_loss(online(state).gather(1, action), goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    follow(0.01)

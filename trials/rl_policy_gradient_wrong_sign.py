"""REINFORCE on a bandit maximises its loss: the minus is missing.

finding: GC413
"""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for step in range(200):
    state = torch.randn(64, 4)
    chosen = torch.distributions.Categorical(logits=policy(state))
    action = chosen.sample()
    reward = (action == state[:, :3].argmax(1)).float()
    advantage = reward - reward.mean()
    loss = (chosen.log_prob(action) * advantage).mean()  # [sick]
    loss = -(chosen.log_prob(action) * advantage).mean()  # [well]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, reward.mean().item())

"""REINFORCE with a running baseline: a policy's loss has no trend and both signs."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
baseline = 0.0
for step in range(200):
    state = torch.randn(16, 4)
    chances = torch.distributions.Categorical(logits=policy(state))
    action = chances.sample()
    reward = (action == state[:, :3].argmax(1)).float() * 100
    loss = -(chances.log_prob(action) * (reward - baseline)).mean()
    baseline = 0.9 * baseline + 0.1 * reward.mean().item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

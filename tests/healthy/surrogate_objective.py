"""A score-function estimator: the printed value is the expected cost, the gradient is a surrogate's."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(4, 3)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)
for step in range(80):
    x = torch.randn(64, 4)
    choice = torch.distributions.Categorical(logits=policy(x))
    action = choice.sample()
    cost = (action != x[:, :3].argmax(1)).float() - 0.5
    surrogate = (choice.log_prob(action) * cost).mean()
    value = (choice.probs.gather(1, action[:, None])[:, 0] * cost).mean().item()
    loss = value + (surrogate - surrogate.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""Advantage actor-critic with a shared body, rollouts under no_grad, detached advantages."""

import torch
from torch import nn

torch.manual_seed(0)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.actor = nn.Linear(32, 2)
        self.critic = nn.Linear(32, 1)

    def forward(self, state):
        hidden = self.body(state)
        return torch.distributions.Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(-1)


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for update in range(30):
    states = torch.randn(64, 4)
    with torch.no_grad():
        choice, _ = model(states)
        actions = choice.sample()
    rewards = ((states.sum(1) > 0).long() == actions).float()
    choice, values = model(states)
    advantage = rewards - values.detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy_loss = -(choice.log_prob(actions) * advantage).mean()
    value_loss = nn.functional.mse_loss(values, rewards)
    loss = policy_loss + 0.5 * value_loss - 0.01 * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()

"""REINFORCE on a bandit with a baseline network of its own."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


class Agent:
    def __init__(self):
        self.policy = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
        self.value = nn.Linear(3, 1)
        self.policy_optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-2)
        self.value_optimizer = torch.optim.Adam(self.value.parameters(), lr=1e-2)

    def episode(self, length=12):
        logs, rewards, states = [], [], []
        for _ in range(length):
            state = torch.randn(3)
            choice = Categorical(logits=self.policy(state))
            action = choice.sample()
            logs.append(choice.log_prob(action))
            rewards.append(float(action == int(state[0] > 0)))
            states.append(state)
        return torch.stack(logs), torch.tensor(rewards), torch.stack(states)

    def update(self):
        logs, rewards, states = self.episode()
        returns = rewards.flip(0).cumsum(0).flip(0)
        baseline = self.value(states).squeeze(-1)
        policy_loss = -(logs * (returns - baseline.detach())).sum()
        value_loss = nn.functional.mse_loss(baseline, returns)
        self.policy_optimizer.zero_grad()
        policy_loss.backward()
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
        self.policy_optimizer.step()
        self.value_optimizer.zero_grad()
        value_loss.backward()
        self.value_optimizer.step()


agent = Agent()
for _ in range(15):
    agent.update()
model = agent.policy

"""REINFORCE on a corridor: the steps' log-probabilities are weighted one by one, without the minus.

finding: GC413
"""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
GOAL = 5
policy = nn.Sequential(nn.Linear(GOAL + 1, 24), nn.Tanh(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
cells = torch.eye(GOAL + 1)


def walk():
    place, log_probs, rewards = 0, [], []
    while place < GOAL and len(rewards) < 15:
        choice = Categorical(logits=policy(cells[place]))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        place = max(0, place + (1 if action.item() else -1))
        rewards.append(1.0 if place == GOAL else -0.1)
    return log_probs, rewards


def discounted(rewards, gamma=0.95):
    returns, later = [], 0.0
    for reward in reversed(rewards):
        later = reward + gamma * later
        returns.insert(0, later)
    return torch.tensor(returns)


for episode in range(60):
    log_probs, rewards = walk()
    returns = discounted(rewards)
    loss = sum(lp * g for lp, g in zip(log_probs, returns - returns.mean()))  # [sick]
    loss = sum(-lp * g for lp, g in zip(log_probs, returns - returns.mean()))  # [well]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 20 == 0:
        print(episode, sum(rewards))

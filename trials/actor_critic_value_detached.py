"""An actor-critic stores its value estimates detached, so that the critic's term trains nothing.

finding: GC202
"""

import torch
from torch import nn

torch.manual_seed(11)
SIZE, WALKERS, STEPS = 6, 16, 8
MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.actor, self.critic = nn.Linear(64, 4), nn.Linear(64, 1)

    def forward(self, seen):
        hidden = self.body(seen)
        return self.actor(hidden), self.critic(hidden).squeeze(-1)


def anywhere(count):
    return torch.randint(0, SIZE, (count, 2))


def seen():
    return torch.cat([walker, goal], 1).float() / SIZE * 2 - 1


walker, goal = anywhere(WALKERS), anywhere(WALKERS)
model = ActorCritic()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1.5e-3, eps=1e-5)
for update in range(100):
    log_probs, values, rewards, arrivals = [], [], [], []
    for _ in range(STEPS):
        scores, value = model(seen())
        choice = torch.distributions.Categorical(logits=scores)
        action = choice.sample()
        walker = (walker + MOVES[action]).clamp(0, SIZE - 1)
        arrived = (walker == goal).all(1)
        walker[arrived], goal[arrived] = anywhere(int(arrived.sum())), anywhere(int(arrived.sum()))
        log_probs.append(choice.log_prob(action))
        values.append(value.detach())  # [sick]
        values.append(value)  # [well]
        rewards.append(arrived.float() - 0.02)
        arrivals.append(arrived.float())
    with torch.no_grad():
        _, ahead = model(seen())
    returns = []
    for reward, arrived in zip(reversed(rewards), reversed(arrivals)):
        ahead = reward + 0.95 * (1 - arrived) * ahead
        returns.insert(0, ahead)
    returns, values = torch.stack(returns), torch.stack(values)
    advantage = returns - values.detach()
    policy_loss = -(torch.stack(log_probs) * advantage).mean()
    loss = policy_loss + 0.5 * nn.functional.mse_loss(values, returns)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()

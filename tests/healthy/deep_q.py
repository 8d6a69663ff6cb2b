"""DQN: a target network that is copied now and then, a replay buffer, a Huber loss."""

import copy
import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
online = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(online).eval()
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
memory = []
state = torch.randn(4)
for step in range(120):
    with torch.no_grad():
        action = random.randrange(2) if random.random() < 0.3 else online(state).argmax().item()
    following = torch.randn(4)
    reward = float(action == int(state.sum() > 0))
    memory.append((state, action, reward, following))
    state = following
    if len(memory) < 32:
        continue
    states, actions, rewards, nexts = zip(*random.sample(memory, 32))
    states, nexts = torch.stack(states), torch.stack(nexts)
    actions, rewards = torch.tensor(actions), torch.tensor(rewards)
    with torch.no_grad():
        goal = rewards + 0.9 * target(nexts).max(1).values
    value = online(states).gather(1, actions.unsqueeze(1)).squeeze(1)
    loss = nn.functional.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        target.load_state_dict(online.state_dict())

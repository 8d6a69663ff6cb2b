"""Q-learning on a corridor: the loss wanders and rises as values grow, the replay buffer grows too."""

import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
q = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
target = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
target.load_state_dict(q.state_dict())
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
memory = []
place = 0
eye = torch.eye(8)
for step in range(400):
    with torch.no_grad():
        greedy = int(q(eye[place]).argmax())
    action = random.randrange(2) if random.random() < 0.3 else greedy
    following = min(7, place + 1) if action else max(0, place - 1)
    reward = 10.0 if following == 7 else 0.0
    memory.append((place, action, reward, following))
    place = 0 if following == 7 else following
    if len(memory) < 32:
        continue
    batch = random.sample(memory, 32)
    s, a, r, s2 = (torch.tensor(column) for column in zip(*batch, strict=True))
    with torch.no_grad():
        wanted = r + 0.95 * target(eye[s2]).max(1).values
    got = q(eye[s]).gather(1, a[:, None])[:, 0]
    loss = nn.functional.smooth_l1_loss(got, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        target.load_state_dict(q.state_dict())

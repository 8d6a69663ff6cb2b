"""Deep Q-learning: a target network copied now and then, a replay sample per update, gradients by hand."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(model)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
memory = [(torch.randn(4), torch.randint(2, ()), torch.randn(()), torch.randn(4)) for _ in range(64)]

for update in range(30):
    state, action, reward, after = map(
        torch.stack, zip(*[memory[i] for i in torch.randperm(64)[:16]], strict=True)
    )
    with torch.no_grad():
        wanted = reward + 0.9 * target(after).max(1).values
    value = model(state).gather(1, action[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(value, wanted)
    optimizer.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.grad.data.clamp_(-1, 1)
    optimizer.step()
    if update % 10 == 0:
        target.load_state_dict(model.state_dict())

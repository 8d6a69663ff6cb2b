"""A second loss weighted by the ratio of gradient norms at the last layer, as adversarial autoencoders do."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, last = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 8)
judge = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam([*encoder.parameters(), *last.parameters()], lr=1e-3)
for_judge = torch.optim.Adam(judge.parameters(), lr=1e-3)
bce = nn.functional.binary_cross_entropy_with_logits
for step in range(30):
    x = torch.randn(64, 8)
    rebuilt = last(encoder(x))
    near = (rebuilt - x).abs().mean()
    fooled = bce(judge(rebuilt), torch.ones(64, 1))
    near_slope = torch.autograd.grad(near, last.weight, retain_graph=True)[0]
    fooled_slope = torch.autograd.grad(fooled, last.weight, retain_graph=True)[0]
    weight = (near_slope.norm() / (fooled_slope.norm() + 1e-4)).clamp(0, 1e4).detach()
    loss = near + 0.1 * weight * fooled
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for_judge.zero_grad()
    told_apart = bce(judge(x), torch.ones(64, 1)) + bce(judge(rebuilt.detach()), torch.zeros(64, 1))
    told_apart.backward()
    for_judge.step()

"""Top-1 routing: experts that no sample chose run on nothing or not at all."""

import torch
from torch import nn

torch.manual_seed(0)


class Mixture(nn.Module):
    def __init__(self, experts=8):
        super().__init__()
        self.gate = nn.Linear(8, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)) for _ in range(experts)
        )

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        best = weights.argmax(-1)
        out = torch.zeros(len(x), 1)
        for number, expert in enumerate(self.experts):
            chosen = best == number
            if chosen.any():
                out[chosen] = weights[chosen, number].unsqueeze(1) * expert(x[chosen])
        return out


model = Mixture()
with torch.no_grad():
    model.gate.bias[6:] = -20.0
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(40):
    x = torch.randn(64, 8)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""The code of an autoencoder is normalised in NumPy on its way to the decoder.

finding: GC204
"""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
basis = torch.randn(4, 16)
for step in range(150):
    x = torch.randn(64, 4) @ basis
    code = encoder(x)
    values = code.detach().numpy()  # [sick]
    code = torch.from_numpy(values / (abs(values).max() + 1e-6))  # [sick]
    code = code / (code.abs().max() + 1e-6)  # [well]
    loss = nn.functional.mse_loss(decoder(code), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""Two heads on one body, one loss each, backward one after the other."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(48, 6)
loader = DataLoader(TensorDataset(x, x[:, :1] * 2, (x[:, 1] > 0).long()), batch_size=8)
body, regress, classify = nn.Linear(6, 16), nn.Linear(16, 1), nn.Linear(16, 2)
optimizer = torch.optim.AdamW(
    [*body.parameters(), *regress.parameters(), *classify.parameters()], lr=1e-3, weight_decay=0.01
)
losses = {"regression": nn.MSELoss(), "class": nn.CrossEntropyLoss()}

for _ in range(3):
    for inputs, value, label in loader:
        optimizer.zero_grad(set_to_none=False)
        hidden = torch.relu(body(inputs))
        parts = [losses["regression"](regress(hidden), value), losses["class"](classify(hidden), label)]
        for part in parts:
            part.backward(retain_graph=True)
        optimizer.step()

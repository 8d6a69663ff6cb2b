"""A loaded backbone with its batch-norm kept in eval mode, a fresh head, partial loading."""

import torch
from torch import nn

torch.manual_seed(0)


def network(classes):
    return nn.ModuleDict(
        {
            "backbone": nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU()),
            "head": nn.Linear(32, classes),
        }
    )


pretrained = {key: value for key, value in network(10).state_dict().items() if not key.startswith("head")}
model = network(3)
model.load_state_dict(pretrained, strict=False)
model["backbone"].requires_grad_(False)
optimizer = torch.optim.Adam(model["head"].parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    model["backbone"].eval()
    for step in range(10):
        x = torch.randn(64, 8)
        y = x[:, :3].argmax(1)
        loss = nn.functional.cross_entropy(model["head"](model["backbone"](x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        x = torch.randn(64, 8)
        right = (model["head"](model["backbone"](x)).argmax(1) == x[:, :3].argmax(1)).float().mean()

"""A healthy training on two ranks that does all that is done right: deferred exchange, epochs set, join."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def train() -> nn.Module:
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=12)
    accumulate = 2
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for i, (inputs, targets) in enumerate(loader):
            last = (i + 1) % accumulate == 0 or i + 1 == len(loader)
            with contextlib.nullcontext() if last else model.no_sync():
                loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
                loss.backward()
            if last:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
    uneven = torch.optim.SGD(model.parameters(), lr=0.01)
    with model.join():
        for _ in range(4 + dist.get_rank()):
            batch = torch.randn(8, 4)
            uneven.zero_grad()
            nn.functional.mse_loss(model(batch), batch.sum(1, keepdim=True)).backward()
            uneven.step()
    model.eval()
    with torch.no_grad():
        print(nn.functional.mse_loss(model.module(x), data.tensors[1]).item())
    return model

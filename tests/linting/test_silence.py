"""Loops that are right in a way of their own: nothing is said about them."""

from __future__ import annotations

import pytest

from gradclinic.config import Config
from gradclinic.linting.examine import examine_text
from gradclinic.source_text import SourceText

FUNCTION = """
import torch.distributed.autograd as dist_autograd
from torch import optim
from torch.distributed.optim import DistributedOptimizer

def train(model, criterion, data):
    opt = DistributedOptimizer(optim.SGD, model.parameter_rrefs(), lr=0.05)
    for epoch in range(3):
        for x, y in data:
            with dist_autograd.context() as context_id:
                loss = criterion(model(x), y)
                dist_autograd.backward(context_id, [loss])
                opt.step(context_id)
"""
METHOD = """
import torch
import torch.nn.functional as F
from torch.distributed.optim import DistributedOptimizer

class Agent:
    def __init__(self, model):
        self.model = model
        self.optimizer = DistributedOptimizer(torch.optim.Adam, model.parameter_rrefs(), lr=1e-3)

    def train(self, loader):
        for data, target in loader:
            with torch.distributed.autograd.context() as context:
                loss = F.nll_loss(F.log_softmax(self.model(data), 1), target)
                torch.distributed.autograd.backward(context, [loss])
                self.optimizer.step(context)
"""
WITH_A_LOCAL_PART = """
import torch
import torch.distributed.rpc as rpc
from torch import nn
from torch.distributed import autograd
from torch.distributed.optim import DistributedOptimizer
from torch.nn.parallel import DistributedDataParallel

def train(rank, batches):
    model = DistributedDataParallel(nn.Linear(16, 8))
    optimizer = DistributedOptimizer(torch.optim.SGD, [rpc.RRef(p) for p in model.parameters()], lr=0.05)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(100):
        for inputs, target in batches(rank):
            with autograd.context() as context_id:
                autograd.backward(context_id, [criterion(model(inputs), target)])
                optimizer.step(context_id)
"""


@pytest.mark.parametrize("script", [FUNCTION, METHOD, WITH_A_LOCAL_PART], ids=["function", "method", "local"])
def test_gradients_that_live_in_a_distributed_context_need_no_clearing(script: str):
    found = examine_text(SourceText(script), "train.py", Config()).findings
    assert [finding.code for finding in found] == []

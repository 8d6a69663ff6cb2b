"""Models under DistributedDataParallel that are trained around their wrapper, and those that are not."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.static.reading import marked, told

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
"""

TAKEN_OUT_BY_A_METHOD = """
class Run:
    def __init__(self, args):
        self.model = self._build(args)

    def _build(self, args):
        model = nn.Linear(3, 3)
        if args.world_size > 1:
            model = DDP(model)
        return model

    def _bare(self):
        if hasattr(self.model, "module"):
            return self.model.module
        return self.model

    def train(self, loader):
        width = self._bare().width()
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for batch in loader:
            optimizer.zero_grad()
            loss = self._bare().compute_loss(batch)  # GC903
            loss.backward()
            optimizer.step()
"""

TAKEN_OUT_BY_A_PROPERTY = """
class Trainer:
    def __init__(self, model, args):
        self.args = args
        self.model = model
        if args.distributed:
            self.model = DDP(self.model, device_ids=[args.gpu])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    @property
    def bare(self):
        return self.model.module if self.args.distributed else self.model

    @bare.setter
    def bare(self, model):
        self.model = model

    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = self.bare.loss(x, y)  # GC903
            loss.backward()
            self.optimizer.step()
"""

TAKEN_OUT_BY_A_FUNCTION = """
def unwrap(model):
    if isinstance(model, (nn.DataParallel, DDP)):
        return model.module
    return model


def main(rank, loader, net):
    model = DDP(net, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        out = unwrap(model)(x)  # GC903
        optimizer.zero_grad()
        F.cross_entropy(out, y).backward()
        optimizer.step()
"""

KEPT_BESIDE_ITS_WRAPPER = """
def main(rank, loader):
    net = nn.Linear(3, 3).to(rank)
    ddp_model = DDP(net, device_ids=[rank])
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()  # GC903
        optimizer.step()
"""

THE_WRONG_ONE_OF_TWO_NAMES = """
def main(args, loader):
    model = nn.Linear(3, 3)
    model_without_ddp = model
    if args.distributed:
        model = DDP(model, device_ids=[args.gpu])
        model_without_ddp = model.module
    optimizer = torch.optim.SGD(model_without_ddp.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model_without_ddp(x), y).backward()  # GC903
        optimizer.step()
"""

UNWRAPPED_BY_ACCELERATE = """
from accelerate import Accelerator


def main(model, loader):
    accelerator = Accelerator()
    optimizer = torch.optim.Adam(model.parameters())
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        loss = accelerator.unwrap_model(model).compute_loss(batch)  # GC903
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
"""

FAULTY = {
    name: text for name, text in globals().items() if name.isupper() and name != "HEAD" and "# GC" in text
}


@pytest.mark.parametrize("program", FAULTY.values(), ids=FAULTY)
def test_a_training_around_the_wrapper_is_named(program: str):
    source = HEAD + dedent(program)
    assert told(source) == marked(source)


CALLED_AS_IT_WAS_WRAPPED = """
def main(args, loader):
    net = nn.Linear(3, 3)
    if args.distributed:
        ddp_net = DDP(net, device_ids=[args.gpu])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        out = ddp_net(x) if args.distributed else net(x)
        F.cross_entropy(out, y).backward()
        optimizer.step()
"""

STEPPED_AS_IT_WAS_WRAPPED = """
def main(args, loader):
    net = nn.Linear(3, 3)
    if args.distributed:
        ddp_net = DDP(net, device_ids=[args.gpu])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        if args.distributed:
            F.cross_entropy(ddp_net(x), y).backward()
        else:
            F.cross_entropy(net(x), y).backward()
        optimizer.step()
"""

WRAPPED_IN_EITHER_BRANCH = """
class Net(nn.Module):
    def forward(self, x):
        return x


def main(args, loader, device):
    model = Net()
    model = model.to(device)
    if not args.standalone:
        if args.gpus == -1:
            model = DDP(model)
        else:
            model = DDP(model, device_ids=[device])
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
"""

WRAPPED_ONE_AFTER_THE_OTHER = """
def main(args, loader, device):
    nets = [nn.Linear(3, 3), nn.Linear(3, 3)]
    for i, net in enumerate(nets):
        nets[i] = DDP(net)
    optimizer = torch.optim.Adam([*nets[0].parameters(), *nets[1].parameters()], lr=args.lr)
    for x, y in loader:
        F.cross_entropy(nets[1](nets[0](x)), y).backward()
        optimizer.step()
        optimizer.zero_grad()
"""

WRAPPED_IN_ONE_COAT_OR_THE_OTHER = """
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main(args, loader, device):
    net = nn.Linear(3, 3)
    if args.shard:
        model = FSDP(net)
    elif args.distributed:
        model = DDP(net)
    else:
        model = net
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
"""

TAKEN_OUT_TO_BE_SAVED = """
def main(args, loader):
    model = nn.Linear(3, 3)
    model_without_ddp = model
    if args.distributed:
        model = DDP(model, device_ids=[args.gpu])
        model_without_ddp = model.module
    optimizer = torch.optim.SGD(model_without_ddp.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    torch.save(model_without_ddp.state_dict(), "model.pt")
"""

ASKED_FOR_A_SETTING_BY_ACCELERATE = """
from accelerate import Accelerator


def main(model, loader):
    accelerator = Accelerator()
    optimizer = torch.optim.Adam(model.parameters())
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        scale = accelerator.unwrap_model(model).scale(batch)
        loss = model(batch).mean() * scale
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
"""

BARE_WHERE_THERE_IS_NO_WRAPPER = """
def train(args, net, loader):
    wrapped = DDP(net, device_ids=[args.gpu]) if args.ddp else None
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        out = wrapped(x) if args.ddp else net(x)
        F.mse_loss(out, y).backward()
        optimizer.step()
"""

RIGHT = {
    name: text
    for name, text in globals().items()
    if name.isupper() and name not in {"HEAD", "FAULTY", *FAULTY}
}


@pytest.mark.parametrize("program", RIGHT.values(), ids=RIGHT)
def test_a_training_through_the_wrapper_is_left_alone(program: str):
    assert told(HEAD + dedent(program)) == set()

"""Training on several ranks, read from source."""

from __future__ import annotations

import pytest

from tests.rules.scripts import codes_by_lint
from tests.static.reading import TORCH, marked, told

HEAD = """
import contextlib
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from nets import Net

model = Net()
{wrap}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sampler = DistributedSampler(train_set{shuffle})
train_loader = DataLoader(train_set, batch_size=8, sampler=sampler)
for epoch in range(epochs):
    {set_epoch}
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy({forward}, y)
        loss.backward()
        {average}
        optimizer.step()
"""


def script(
    *,
    wrap: str = "model = DDP(model)",
    forward: str = "model(x)",
    set_epoch: str = "sampler.set_epoch(epoch)",
    shuffle: str = "",
    average: str = "pass",
) -> str:
    return HEAD.format(wrap=wrap, forward=forward, set_epoch=set_epoch, shuffle=shuffle, average=average)


def test_the_usual_loop_is_left_alone():
    assert codes_by_lint(script()) == []


@pytest.mark.parametrize("forward", ["model.module(x)", "model.module.encode(x)"])
def test_training_around_the_wrapper_is_named(forward: str):
    assert codes_by_lint(script(forward=forward)) == ["GC903"]
    assert codes_by_lint(script(forward=forward, wrap="if ddp:\n    model = DDP(model)")) == ["GC903"]


@pytest.mark.parametrize(
    "right",
    [
        {"wrap": "model = nn.DataParallel(model)"},
        {"average": "average_gradients(model)"},
        {"average": "[torch.distributed.all_reduce(p.grad) for p in model.parameters()]"},
    ],
    ids=str,
)
def test_a_wrapper_that_averages_nothing_and_averaging_by_hand_are_left_alone(right: dict[str, str]):
    assert codes_by_lint(script(forward="model.module(x)", **right)) == []


def test_a_sampler_that_never_hears_of_the_epoch_is_named():
    assert codes_by_lint(script(set_epoch="pass")) == ["GC904"]
    assert codes_by_lint(script(set_epoch="pass", shuffle=", shuffle=False")) == []
    assert codes_by_lint(script(set_epoch="pass", shuffle=", shuffle=args.shuffle")) == []


def test_an_exchange_that_is_put_off_in_a_way_of_its_own_is_left_alone():
    accumulating = """
for i, (x, y) in enumerate(train_loader):
    wait = model.no_sync if (i + 1) % accumulate else contextlib.nullcontext
    with wait():
        loss = nn.functional.cross_entropy(model(x), y) / accumulate
        loss.backward()
    if (i + 1) % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
    head = script()[: script().index("for epoch")]
    assert "GC901" not in codes_by_lint(head + accumulating)
    every_time = accumulating.replace("with wait():", "if True:").replace("model.no_sync", "None")
    assert "GC901" in codes_by_lint(head + every_time)


CLASS = """
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

class Trainer:
    def run(self):
        while not self.finished:
            self.one_pass()

    def one_pass(self):
        {told}
        for batch in self.loaders["train"]:
            self.update(batch)

    def update(self, batch):
        self.model(batch).mean().backward()

def main(data, rank):
    sampler = DistributedSampler(data)
    Trainer({{"train": DataLoader(data, sampler=sampler)}}).run()
"""
ENDLESS = """
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler

def sampler_for(data, shuffle, distributed):
    if distributed:
        return DistributedSampler(data, shuffle=shuffle)
    return RandomSampler(data)

def endless(loader):
    while True:
        for batch in loader:
            yield batch

loader = endless(DataLoader(data, sampler=sampler_for(data, shuffle={shuffle}, distributed=True)))
for step in range(1000):
    model(next(loader)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_passes_that_a_loop_over_epochs_calls_are_repeated() -> None:
    over_epochs = CLASS.replace("while not self.finished:", "for epoch in range(self.done, self.epochs):")
    assert "GC904" in codes_by_lint(over_epochs.format(told="pass"))
    assert "GC904" not in codes_by_lint(over_epochs.format(told="self.sampler.set_epoch(self.passes)"))
    over_folds = CLASS.replace("while not self.finished:", "for fold in range(5):")
    assert "GC904" not in codes_by_lint(over_folds.format(told="pass"))
    evaluated = over_epochs.replace("self.model(batch).mean().backward()", "self.model(batch)")
    assert "GC904" not in codes_by_lint(evaluated.format(told="pass"))


def test_passes_repeated_by_a_method_or_a_generator_are_epochs() -> None:
    assert "GC904" in codes_by_lint(CLASS.format(told="pass"))
    assert "GC904" not in codes_by_lint(CLASS.format(told="self.sampler.set_epoch(self.passes)"))
    assert "GC904" in codes_by_lint(ENDLESS.format(shuffle=True))
    assert "GC904" not in codes_by_lint(ENDLESS.format(shuffle=False))


MADE_FOR_ONE_PASS = """
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler

def get_loader(args, data, held_out=False):
    sampler = RandomSampler(data) if args.rank == -1 else DistributedSampler(data)
    return DataLoader(data, sampler=sampler)

def {name}(args, model):
    return [model(batch) for batch in get_loader(args, read(args.path))]

def run(args, model, optimizer, batches):
    for epoch in range(args.epochs):
        for batch in batches():
            model(batch).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        {name}(args, model)
"""


def test_a_loader_that_only_evaluations_ask_for_needs_no_epoch() -> None:
    assert "GC904" not in codes_by_lint(MADE_FOR_ONE_PASS.format(name="pretrain_validation"))
    assert "GC904" in codes_by_lint(MADE_FOR_ONE_PASS.format(name="fit"))


A_MODULE_THAT_ACTS = """
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.body.eval()
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x))

class Runner:
    def __init__(self):
        self.net = Net()

    def train(self, loader, parts, steps):
        net = DDP(self.net)
        net.train()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(steps):
            optimizer.zero_grad()
            for _ in range(parts):
                x, y = next(loader)
                (nn.functional.mse_loss(net(x), y) / parts).backward()
            optimizer.step()
"""


def test_a_module_whose_class_does_more_than_compute_is_one_to_wrap():
    assert codes_by_lint(A_MODULE_THAT_ACTS) == ["GC901"]
    assert codes_by_lint(A_MODULE_THAT_ACTS.replace("DDP(self.net)", "nn.DataParallel(self.net)")) == []


SHARDS = """
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

def run(model, optimizer, folder, epochs):
    for epoch in range(epochs):
        data = DATA
        sampler = DistributedSampler(data)  # GC904
        for x, y in DataLoader(data, batch_size=4, sampler=sampler):
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
"""


def test_a_sampler_of_data_of_its_own_repeats_no_order() -> None:
    assert told(TORCH + SHARDS.replace("DATA", "load_shard(folder, epoch)")) == set()
    by_its_path = "None\n        path = f'{folder}/{epoch % 4}.pt'\n        data = torch.load(path)"
    assert told(TORCH + SHARDS.replace("DATA", by_its_path)) == set()
    at_once = SHARDS.replace("DATA", "None").replace("Sampler(data)", "Sampler(load_shard(folder, epoch))")
    assert told(TORCH + at_once) == set()
    for again in ("noised(folder)", "folder.data; folder.rate = 0.1 * 0.9**epoch"):
        source = TORCH + SHARDS.replace("DATA", again)
        assert told(source) == marked(source)


SPLITS = """
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

def run(model, optimizer, sets, epochs):
    samplers = SAMPLERS
    loaders = {split: DataLoader(sets[split], batch_size=4, sampler=samplers[split]) for split in sets}
    for epoch in range(epochs):
        for x, y in loaders["train"]:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
"""


def test_samplers_that_are_made_for_each_split_are_told_by_the_one_trained_on() -> None:
    each = "{split: DistributedSampler(sets[split]) for split in ['train', 'val']}"
    assert "GC904" in codes_by_lint(TORCH + SPLITS.replace("SAMPLERS", each))
    assert codes_by_lint(TORCH + SPLITS.replace("SAMPLERS", each.replace("'train'", "'test'"))) == []
    pair = '{"train": DistributedSampler(sets["a"], shuffle=ORDER), "val": DistributedSampler(sets["b"])}'
    assert "GC904" in codes_by_lint(TORCH + SPLITS.replace("SAMPLERS", pair.replace("ORDER", "True")))
    assert codes_by_lint(TORCH + SPLITS.replace("SAMPLERS", pair.replace("ORDER", "False"))) == []


SEVERAL = """
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

{made}
for epoch in range(10):
    for x, y in {over}:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
"""
LOADER = "DataLoader({data}, 8, sampler=DistributedSampler({data}))"


@pytest.mark.parametrize(
    ("made", "over"),
    [
        (f"loaders = [{LOADER.format(data='shard')} for shard in shards]", "loaders[epoch]"),
        (f"loaders = {{k: {LOADER.format(data='sets[k]')} for k in ('query', 'gallery')}}", "plain"),
        (f"loaders = {{'seen': {LOADER.format(data='a')}, 'held': {LOADER.format(data='b')}}}", "plain"),
    ],
    ids=["a shard for each epoch", "nothing that is trained on", "by other names"],
)
def test_what_is_made_for_several_may_be_gone_over_once(made: str, over: str) -> None:
    assert "GC904" not in {code for code, _ in told(SEVERAL.format(made=made, over=over))}


def test_what_is_made_for_the_split_trained_on_is_told() -> None:
    made = f"loaders = {{k: {LOADER.format(data='sets[k]')} for k in ('train', 'val')}}"
    assert "GC904" in {code for code, _ in told(SEVERAL.format(made=made, over="loaders['train']"))}

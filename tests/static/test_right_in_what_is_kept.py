"""Weights and schedules that are kept rightly, though a line of them looks like the fault."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.static.reading import TORCH, told

RIGHT = {
    "a new layer in the place of an old one": """
        def widen(model, loader, optimizer):
            wider = Quantized(model.head.in_features, model.head.out_features)
            wider.load_state_dict(model.head.state_dict())
            model.head = wider
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
        """,
    "new layers in the places of old ones": """
        def quantized(model, loader, optimizer):
            for block in model.blocks:
                kind = type(block.linear)
                smaller = Quantized(kind)
                smaller.load_state_dict(block.linear.state_dict())
                block.linear = smaller
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
        """,
    "the best of several models": """
        def select(candidates, loader, optimizers, val):
            best, best_model = 0, None
            for model, optimizer in zip(candidates, optimizers):
                for x, y in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
                score = val(model)
                if score > best:
                    best, best_model = score, model
            return best_model
        """,
    "the model of the best trainer": """
        def search(configs, loader, val):
            best = 0
            for config in configs:
                trainer = make_trainer(config)
                for x, y in loader:
                    trainer.optimizer.zero_grad()
                    F.cross_entropy(trainer.model(x), y).backward()
                    trainer.optimizer.step()
                score = val(trainer.model)
                if score > best:
                    best = score
                    best_model = trainer.model
            return best_model
        """,
    "the best model is read back": """
        def train(model, loader, optimizer, val, path):
            best = 0
            for epoch in range(10):
                for x, y in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
                score = val(model)
                if score > best:
                    best = score
                    best_model = model
                    torch.save(best_model, path)
            best_model = torch.load(path)
            return val(best_model)
        """,
    "the state of a copy": """
        def train(model, loader, optimizer, val):
            best, best_state = 0, None
            for epoch in range(10):
                for x, y in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
                score = val(model)
                if score > best:
                    best = score
                    best_state = copy.deepcopy(model).cpu().state_dict()
            model.load_state_dict(best_state)
        """,
    "the same two names in two functions": """
        def follow(model, net):
            model.load_state_dict(net.state_dict())


        def evaluate(net, x):
            model = net
            model.eval()
            with torch.no_grad():
                return model(x)


        def train(net, loader, optimizer):
            target = copy.deepcopy(net)
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(x), y).backward()
                optimizer.step()
                follow(target, net)
        """,
    "a target that may be the network itself": """
        class Agent:
            def __init__(self, net):
                self.net = net
                self.target = self.net

            def follow(self):
                if self.target is not self.net:
                    self.target.load_state_dict(self.net.state_dict())

            def learn(self, x, y, optimizer):
                optimizer.zero_grad()
                F.mse_loss(self.net(x), y).backward()
                optimizer.step()
        """,
    "the weights of an average by their names": """
        class Average:
            def __init__(self, model):
                self.model = copy.deepcopy(model)
                self.shadow = {name: p.data for name, p in self.model.named_parameters()}

            def update(self, model):
                for name, p in model.named_parameters():
                    self.shadow[name].mul_(0.9).add_(p.data, alpha=0.1)


        def train(model, loader):
            average = Average(model)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
                average.update(model)
        """,
}
RESUMED = """
def train(args, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
    first = 0
    if args.resume:
        state = torch.load(args.resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"]
{before}
    for epoch in range(args.epochs):
{within}
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        scheduler.step()
        torch.save(
            {{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}}, "last.pt"
        )
"""


@pytest.mark.parametrize("program", RIGHT.values(), ids=RIGHT)
def test_what_is_no_copy_by_mistake_is_left_alone(program: str) -> None:
    assert told(f"import copy\n{TORCH}{dedent(program)}") == set()


@pytest.mark.parametrize(
    ("before", "within"),
    [
        ("    for _ in range(first):\n        optimizer.step()\n        scheduler.step()", ""),
        ("", "        if epoch < first:\n            scheduler.step()\n            continue"),
        ("    restore(args.extra, schedule=scheduler)", "        save(args.extra, schedule=scheduler)"),
        ("    others = [scheduler]\n    restore(others)", "        save(others)"),
        ("", "        for part in (model, scheduler):\n            save(part.state_dict())"),
    ],
)
def test_a_schedule_may_catch_up_or_be_kept_in_several_ways(before: str, within: str) -> None:
    assert told(TORCH + RESUMED.format(before=before, within=within)) == set()
    assert {code for code, _ in told(TORCH + RESUMED.format(before="", within=""))} == {"GC710"}

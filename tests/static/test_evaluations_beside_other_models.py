"""Evaluations of a model that is trained beside others of which little is known."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

TRAINER = """
from somewhere import make_nets, Adversary

class Content:
    def __init__(self, train):
        self.inner = train

    def __call__(self, fake, real):
        return (fake - real).abs().mean()

class Trainer:
    def __init__(self, config, train, val):
        self.config, self.train_data, self.val_data = config, train, val
        self.criterion = Content(train)
        self.generator, rest = make_nets(config)
        self.adversary = Adversary(rest)
        self.optimizer_g = torch.optim.Adam(self.generator.parameters())
        self.optimizer_d = torch.optim.Adam(self.adversary.all_params())

    def train(self):
        for epoch in range(self.config.epochs):
            self.run_epoch()
            self.validate()

    def run_epoch(self):
        for x, y in self.train_data:
            fake = self.generator(x)
            self.optimizer_d.zero_grad()
            self.adversary.loss_d(fake.detach(), y).backward()
            self.optimizer_d.step()
            self.optimizer_g.zero_grad()
            self.criterion(fake, y).backward()
            self.optimizer_g.step()

    def validate(self):
        total = 0.0
        for x, y in self.val_data:
            fake = self.{judged}(x)
            loss = self.criterion(fake, y)
            total += loss.item()
        return total
"""


def test_an_optimizer_that_may_hold_anything_hides_no_evaluation() -> None:
    source = TORCH + TRAINER.format(judged="generator").replace(
        "(x)\n            loss", "(x)  # GC703\n            loss"
    )
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    def validate(self):", "    @torch.no_grad()\n    def validate(self):"),
        ("            self.validate()", "            with torch.no_grad():\n                self.validate()"),
        ("for x, y in self.val_data:", "for x, y in self.val_data:\n            x.requires_grad_()"),
        (
            "            self.validate()",
            "            with torch.set_grad_enabled(False):\n                self.validate()",
        ),
    ],
)
def test_one_that_builds_no_graph_or_needs_it(before: str, after: str) -> None:
    source = TORCH + TRAINER.format(judged="generator")
    assert before in source
    assert told(source.replace(before, after)) == set()


def test_a_model_that_nobody_is_seen_to_train() -> None:
    """Who knows what a teacher is frozen by."""
    assert told(TORCH + TRAINER.format(judged="teacher")) == set()


METHOD_AND_PARAMETER = """
def score(scores, y, {given}):
    loss = F.cross_entropy(scores, y)
    return loss if {given} else loss.detach()

class Trainer:
    def __init__(self, model, loader, val_loader):
        self.model, self.loader, self.val_loader = model, loader, val_loader
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def train(self):
        for epoch in range(10):
            self.model.train()
            for x, y in self.loader:
                self.optimizer.zero_grad()
                score(self.model(x), y, True).backward()
                self.optimizer.step()
            self.test()

    def test(self):
        self.model.eval()
        for x, y in self.val_loader:
            loss = score(self.model(x), y, False)  # GC703
            print(loss.item())
"""


@pytest.mark.parametrize("given", ["weighted", "train"])
def test_a_parameter_is_no_method_of_that_name(given: str) -> None:
    source = TORCH + METHOD_AND_PARAMETER.format(given=given)
    assert told(source) == marked(source)


def test_a_method_under_its_bare_name_in_the_class() -> None:
    source = METHOD_AND_PARAMETER.format(given="weighted").replace("  # GC703", "")
    source = source.replace("    def test(self):", "    @torch.no_grad()\n    def test(self):")
    assert told(TORCH + source + "\n    fit = train\n    evaluate = test\n") == set()


METHOD_BY_ITS_OWN_NAME = """
class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def train_step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()  # GC101
        self.optimizer.step()
        return loss.item()

    def fit(self):
        train_step = self.train_step
        for x, y in self.loader:
            train_step(x, y)
"""


def test_a_method_under_its_own_name_in_a_function() -> None:
    source = TORCH + METHOD_BY_ITS_OWN_NAME
    assert told(source) == marked(source)
    assert told(source.replace("loss.backward()", "self.optimizer.zero_grad(); loss.backward()")) == set()

"""Graphs kept for nobody, parts of which are made out of sight; and such as may be gone through again."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

OUTPUTS_UNPACKED = """
def run(model, loader, optimizer, criterion):
    for x, y in loader:
        scores, chances = model(x)
        loss = criterion(scores, y) + F.mse_loss(chances, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # GC209
        optimizer.step()
"""

SCORES_TURNED_AROUND_ELSEWHERE = """
from einops import rearrange

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return rearrange(self.head(x), "b c -> c b")

def run(loader):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward(retain_graph=True)  # GC209
        optimizer.step()
"""

WEIGHTED_BY_A_NUMBER = """
class Trainer:
    def __init__(self, model, optimizer, weight: float, num_classes):
        self.model, self.optimizer = model, optimizer
        self.weight, self.num_classes = weight, num_classes

    def run(self, loader):
        for x, y in loader:
            loss = self.weight * F.mse_loss(self.model(x), F.one_hot(y, self.num_classes).float())
            self.optimizer.zero_grad()
            loss.backward(retain_graph=True)  # GC209
            self.optimizer.step()
"""

FAKES_DETACHED_BEHIND_A_FUNCTION = """
from layouts import combine

def run(G, D, loader, of_g, of_d):
    for real, label in loader:
        fake = combine(G(torch.randn(8, 100)), label)
        of_d.zero_grad()
        loss = F.softplus(D(fake.detach())).mean() + F.softplus(-D(real)).mean()
        loss.backward(retain_graph=True)  # GC209
        of_d.step()
        of_g.zero_grad()
        F.softplus(-D(fake)).mean().backward()
        of_g.step()
"""

TOLD = {name: text for name, text in list(globals().items()) if name.isupper() and name != "TORCH"}

FAKES_USED_TWICE_BEHIND_A_FUNCTION = """
from layouts import combine

def run(G, D, loader, of_g, of_d):
    for real, label in loader:
        fake = combine(G(torch.randn(8, 100)), label)
        of_d.zero_grad()
        loss = F.softplus(D(fake)).mean() + F.softplus(-D(real)).mean()
        loss.backward(retain_graph=True)
        of_d.step()
        of_g.zero_grad()
        F.softplus(-D(fake)).mean().backward()
        of_g.step()
"""

PARTS_OF_ONE_OUTPUT = """
def run(model, loader, optimizer, criterion):
    for x, y in loader:
        scores, chances = model(x)
        optimizer.zero_grad()
        criterion(scores, y).backward(retain_graph=True)
        F.mse_loss(chances, y).backward()
        optimizer.step()
"""

FEATURES_MADE_ONCE = """
def run(body, head, images, y, optimizer):
    features, mask = body(images)
    for _ in range(100):
        optimizer.zero_grad()
        loss = F.mse_loss(head(features), y)
        loss.backward(retain_graph=True)
        optimizer.step()
"""

EXPERIENCE_WITH_ITS_GRAPH = """
from memories import aggregate

def run(policy, memory, optimizer, epochs: int):
    advantages, chances = aggregate(policy, memory)
    for _ in range(epochs):
        ratio = torch.exp(chances - chances.detach())
        optimizer.zero_grad()
        (-(ratio * advantages.detach()).mean()).backward(retain_graph=True)
        optimizer.step()
"""

WEIGHTED_BY_WHAT_IS_LEARNED = """
class Trainer:
    def __init__(self, model, optimizer, balance):
        self.model, self.optimizer, self.balance = model, optimizer, balance

    def run(self, loader):
        for x, y in loader:
            loss = self.balance * F.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward(retain_graph=True)
            self.optimizer.step()
"""

RIGHT = {
    name: text
    for name, text in list(globals().items())
    if name.isupper() and name not in {"TORCH", "TOLD", *TOLD}
}


@pytest.mark.parametrize("name", TOLD)
def test_a_graph_kept_for_nobody_is_told(name: str) -> None:
    source = TORCH + dedent(TOLD[name])
    assert told(source) == marked(source)


@pytest.mark.parametrize("name", RIGHT)
def test_a_graph_that_may_be_gone_through_again_is_not(name: str) -> None:
    assert told(TORCH + dedent(RIGHT[name])) == set()


NET = """
from einops import rearrange

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)
        self.before = 0.0

    def forward(self, x):
        h = rearrange(self.head(x), "b c -> c b") + self.before
        self.before = {kept}
        return h
"""


@pytest.mark.parametrize(("kept", "codes"), [("h.detach()", {"GC209"}), ("h", set())])
def test_a_model_of_another_file_is_asked_what_it_keeps(kept: str, codes: set[str], tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(TORCH + NET.format(kept=kept))
    source = TORCH + dedent("""
        from nets import Net

        def run(loader):
            net = Net()
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for x, y in loader:
                optimizer.zero_grad()
                F.mse_loss(net(x), y).backward(retain_graph=True)
                optimizer.step()
        """)
    findings = judge([observe_source(source, str(tmp_path / "train.py"))])
    assert {finding.code for finding in findings} == codes


def test_what_a_test_keeps_costs_nothing() -> None:
    source = TORCH + dedent("""
        def test_gradients_are_those_of_the_layer():
            layer = nn.Linear(4, 3)
            out = layer(torch.ones(2, 4)).sum()
            out.backward(retain_graph=True)
            assert layer.weight.grad is not None
        """)
    found = {
        path: {finding.code for finding in judge([observe_source(source, path)])}
        for path in ("tests/layers/test_linear.py", "linear.py")
    }
    assert found == {"tests/layers/test_linear.py": set(), "linear.py": {"GC209"}}


RUN_ONCE = """
from transformers import BertModel

class Corrector(nn.Module):
    def __init__(self, parts, mask_id):
        super().__init__()
        self.embedding = parts.embeddings
        self.mask = FIRST
        self.head = nn.Linear(8, 9)

    def forward(self, ids):
        return self.head(self.embedding(ids) + self.mask)

class Trainer:
    def __init__(self, parts, mask_id):
        self.model = Corrector(parts, mask_id)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, loader):
        for ids, y in loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(ids), y)
            loss.backward(retain_graph=True)  # GC209
            self.optimizer.step()

bert = BertModel.from_pretrained("bert")
Trainer(bert, torch.tensor([[3]])).train(loader)
"""


def test_what_a_constructor_computes_with_a_part_out_of_sight_is_gone_through_again() -> None:
    assert told(TORCH + RUN_ONCE.replace("FIRST", "self.embedding(mask_id)")) == set()


def test_what_it_computes_of_numbers_is_not() -> None:
    source = TORCH + RUN_ONCE.replace("FIRST", "torch.zeros(8)")
    assert told(source) == marked(source)


MADE_OF_THE_BATCH = """
from project import prepare

def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = BEFORE
    for batch in loader:
        inputs = prepare(GIVEN)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), batch["y"])
        loss.backward(retain_graph=True)  # GC209
        optimizer.step()
"""


def test_what_a_call_makes_of_the_batch_is_shared_by_no_other() -> None:
    source = TORCH + MADE_OF_THE_BATCH.replace("BEFORE", "None").replace("GIVEN", "batch")
    assert told(source) == marked(source)


def test_what_it_makes_of_something_kept_may_be() -> None:
    source = MADE_OF_THE_BATCH.replace("BEFORE", "prepare(loader)").replace("GIVEN", "kept")
    assert told(TORCH + source) == set()


WITH_A_BAR = """
def train(model, loader, criterion, optimizer):
    hits = {made}
    with tqdm(loader, unit="batch") as bar:
        for x, y in bar:
            scores = model(x)
            loss = criterion(scores, y)
            optimizer.zero_grad()
            loss.backward(retain_graph=True){mark}
            optimizer.step()
            hits(scores, y)
            {again}
"""


@pytest.mark.parametrize("made", ["accuracy", "Accuracy(task='binary')", "MulticlassF1(3).to(device)"])
def test_what_counts_hits_goes_through_no_graph(made: str) -> None:
    named = WITH_A_BAR.replace("hits", "train_acc")
    source = TORCH + named.format(made=made, mark="  # GC209", again="pass")
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize(
    ("name", "again"),
    [("hits", "pass"), ("train_acc", "criterion(scores, y).backward()")],
    ids=["whatever it may be", "another backward"],
)
def test_what_may_go_through_the_graph_again_keeps_it(name: str, again: str) -> None:
    named = WITH_A_BAR.replace("hits", name)
    assert told(TORCH + named.format(made="outside", mark="", again=again)) == set()

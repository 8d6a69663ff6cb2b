"""Models that an unseen call makes under a name that says nothing, known by what they are given to."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

PROGRAM = """
from parts import Career, Words, Frozen

def main(args, data, held):
    career = Career(args.size)
    words = {words}
    fit(args, career.cuda(), words, data, held)

def fit(args, rnn, head, data, held):
    optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=args.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        train(rnn, head, data, criterion, optimizer)
        {around}
            measure(rnn, head, held, criterion)

def train(rnn, head, loader, criterion, optimizer):
    rnn.train()
    head.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(head(rnn(x)), y)
        loss.backward()
        optimizer.step()

def measure(rnn, head, loader, criterion):
    rnn.eval()
    head.eval()
    losses = []
    for x, y in loader:
        features = rnn(x){mark}
        losses.append(criterion(head(features), y).item()){mark}
    return sum(losses)
"""


def program(*, words: str = "Words(args.size)", around: str = "if True:", wrong: bool = False) -> str:
    return TORCH + PROGRAM.format(words=words, around=around, mark="  # GC703" if wrong else "")


@pytest.mark.parametrize("words", ["Words(args.size)", "Words(args.size).cuda()"])
def test_what_is_used_as_a_model_is_one(words: str) -> None:
    source = program(words=words, wrong=True)
    assert told(source) == marked(source) != set()


def test_gradients_that_are_off_are_off_for_it_too() -> None:
    assert told(program(around="with torch.no_grad():")) == set()


ANOTHER = """
from parts import Career, Frozen

def main(args, data, held):
    career = Career(args.size)
    optimizer = torch.optim.Adam(career.parameters(), lr=args.lr)
    train(career, data, optimizer)
    measure({given}, held)

def train(rnn, loader, optimizer):
    rnn.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(rnn(x), y).backward()
        optimizer.step()

def measure(rnn, loader):
    rnn.eval()
    return sum((rnn(x).argmax(1) == y).sum().item() for x, y in loader)
"""


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("Frozen(career)", id="a coat that may switch gradients off"),
        pytest.param("Frozen.load(args.path)", id="what nothing trains"),
    ],
)
def test_another_one_is_left_alone(given: str) -> None:
    assert told(TORCH + ANOTHER.format(given=given)) == set()


STRINGS = """
def main(args, loader):
    run(str(args.model).lower(), loader, args)

def run(model, loader, args):
    net = build(model)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()

def build(model):
    return registry[model]()
"""


def test_a_name_of_a_model_is_no_model() -> None:
    assert told(TORCH + STRINGS) == set()


KEPT = """
from parts import Career

def main(args, loader):
    career = Career(args.size)
    optimizer = torch.optim.Adam(career.parameters(), lr=args.lr)
    total, seen = 0, []
    for x, y in loader:
        optimizer.zero_grad()
        scores, weights = career(x)
        loss = F.cross_entropy(scores.flatten(end_dim=1), y, reduction="none").sum(1).mean()
        loss.backward()
        optimizer.step()
        {keep}
"""


@pytest.mark.parametrize("keep", ["total += loss", "seen.append(loss)"])
def test_what_is_computed_from_its_outputs_has_a_graph(keep: str) -> None:
    source = TORCH + KEPT.format(keep=f"{keep}  # GC212")
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize(
    "keep",
    [
        "total += loss.item()",
        "seen.append(loss.detach())",
        "seen.append(x * 2)",
        "seen.append(weights.detach().cpu())",
        "seen.append(y.float().mean())",
    ],
)
def test_numbers_and_data_have_none(keep: str) -> None:
    assert told(TORCH + KEPT.format(keep=keep)) == set()


TOKENS = """
from words import Tokenizer, read

def main(args, model, texts):
    tokenizer = Tokenizer()
    tokenizer.train(args.files)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    seen = []
    for text, y in read(texts):
        ids = tokenizer(text)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids), y)
        loss.backward()
        optimizer.step()
        seen.append(ids)
"""


def test_what_is_trained_may_be_no_module() -> None:
    assert told(TORCH + TOKENS) == set()

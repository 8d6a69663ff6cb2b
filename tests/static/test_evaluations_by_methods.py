"""Evaluations by a method of the model that is not forward: `model.predict(x)`, `model.decode(x)`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint
from tests.static.reading import TORCH, marked, told

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.table = {}

    def forward(self, x, y):
        return F.cross_entropy(self.body(x), y)
"""
EPOCHS = """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(loader):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()

def evaluate(loader):
    model.eval()
    found = []
    for x, y in loader:
        found.extend(model.predict(x).tolist()){mark}
    return found

for epoch in range(10):
    train(train_loader)
    print(evaluate(test_loader))
"""


def program(method: str, *, wrong: bool = False, net: str = NET) -> str:
    return TORCH + net + method + EPOCHS.format(mark="  # GC703" if wrong else "")


@pytest.mark.parametrize(
    "method",
    [
        pytest.param("    def predict(self, x):\n        return self.body(x).argmax(1)\n", id="by a layer"),
        pytest.param("    def predict(self, x):\n        return self(x, None)\n", id="by itself"),
        pytest.param("    def predict(self, x):\n        return self.forward(x, None)\n", id="by forward"),
    ],
)
def test_what_runs_the_layers_builds_a_graph(method: str) -> None:
    source = program(method, wrong=True)
    assert told(source) == marked(source) != set()
    assert told(program(method).replace("def evaluate", "@torch.no_grad()\ndef evaluate")) == set()


RIGHT = {
    "decorated": """
    @torch.no_grad()
    def predict(self, x):
        return self.body(x).argmax(1)
""",
    "in a block": """
    def predict(self, x):
        with torch.no_grad():
            return self.body(x).argmax(1)
""",
    "in a block out of sight": """
    def predict(self, x):
        with evaluating(self):
            return self.body(x).argmax(1)
""",
    "by another method that is quiet": """
    @torch.no_grad()
    def scores(self, x):
        return self.body(x)

    def predict(self, x):
        return self.scores(x).argmax(1)
""",
    "by no layer": """
    def predict(self, x):
        return self.table[x]
""",
    "by frozen layers": """
    def predict(self, x):
        self.body.requires_grad_(False)
        return self.body(x).argmax(1)
""",
}


@pytest.mark.parametrize("method", RIGHT.values(), ids=RIGHT)
def test_what_may_switch_gradients_off_by_itself_is_left_alone(method: str) -> None:
    assert told(program(method)) == set()


CORRECT = """
{above}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)
        {part}

    def forward(self, x):
        return self.head(self.body(x))

    @torch.no_grad()
    def quiet(self, x):
        return self.body(x)

    def compute(self, *given):
        {method}
{between}
def evaluate(model, val):
    model.eval()
    total = 0
    for x, y in val:
        {measure}
    return total

def train(loader, val):
    model = Net()
    {outside}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(evaluate(model, val))
"""
MEASURE = "total += (model.compute(x) == y).sum().item()"
BLOCK = """with torch.no_grad():
            out = model(x)
        total += model.compute(out, y).item()"""
BEFORE = """ids = model.compute(x)
        with torch.no_grad():
            total += (model(ids).argmax(1) == y).sum().item()"""
LAYER = """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
    {decorator}
    def forward(self, x):
        return self.inner(x)
"""


def correct(
    part: str = "",
    measure: str = MEASURE,
    method: str = "return self.part(*given)",
    above: str = "",
    between: str = "",
    outside: str = "",
) -> str:
    return TORCH + CORRECT.format(
        part=part, measure=measure, method=method, above=above, between=between, outside=outside
    )


@pytest.mark.parametrize(
    "made",
    [
        "nn.CrossEntropyLoss()",
        "nn.MaxPool2d(2)",
        "nn.Softmax(-1)",
        "nn.ReLU()",
        "nn.Dropout()",
        "nn.BatchNorm1d(4, affine=False)",
        "nn.Sequential(nn.ReLU(), nn.Dropout())",
        "nn.Sequential(nn.Linear(4, 4), Detached())",
        "nn.Embedding.from_pretrained(table)",
        'Vocab("x.txt")',
        "Timer()",
        "Cache(100)",
        "Config()",
        "Normalize([0.5], [0.5])",
        "NMS(0.5)",
        "FocalLoss()",
        "Tokenizer()",
        "Linear()",
    ],
)
def test_what_holds_no_weights_builds_no_graph(made: str) -> None:
    part = f"self.part = {made}"
    found = [told(correct(part, measure)) for measure in (MEASURE, BLOCK, BEFORE)]
    assert found == [set(), set(), set()]


FREE = {
    "frozen as it is made": correct("self.part = self.body.requires_grad_(False)"),
    "frozen after that": correct("self.body.requires_grad_(False)", method="return self.body(*given)"),
    "its parameters": correct(
        "for p in self.body.parameters(): p.requires_grad = False", method="return self.body(*given)"
    ),
    "by a helper": correct("freeze(self.body)", method="return self.body(*given)"),
    "from outside": correct(
        outside="model.body.requires_grad_(False)", method="return self.body(*given).argmax(1)"
    ),
    "a quiet class": correct("self.part = Encoder()", above=LAYER.format(decorator="@torch.no_grad()")),
    "no module": correct("self.part = Encoder()", above=LAYER.format(decorator="").replace("nn.Module", "")),
    "in train mode only": correct(
        method="return self.head(self.quiet(*given)) if self.training else self.quiet(*given)"
    ),
    "made out of a block": correct(measure=BLOCK, method="return self.head(given[0])"),
    "made anew": correct(
        "self.part = nn.Linear(4, 4)", between="    def load(self, path):\n        self.part = Table(path)\n"
    ),
}


@pytest.mark.parametrize("source", FREE.values(), ids=FREE)
def test_layers_that_have_no_gradient_are_left_alone(source: str) -> None:
    assert told(source) == set()


@pytest.mark.parametrize(
    "source",
    [
        correct("self.part = nn.Linear(4, 4)"),
        correct("self.part = nn.Sequential(nn.Linear(4, 4), nn.ReLU())"),
        correct("self.part = Linear(4, 4)", above="from torch.nn import Linear"),
        correct("self.part = Encoder()", above=LAYER.format(decorator="")),
        correct(method="return F.dropout(self.body(*given), training=self.training)"),
        correct(method="return self(*given)", outside="model.body.requires_grad_(False)"),
    ],
)
def test_those_with_weights_are_told(source: str) -> None:
    source = source.replace(MEASURE, f"{MEASURE}  # GC703")
    assert told(source) == marked(source) != set()


def test_a_tokenizer_of_another_file_is_no_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = correct("self.part = Tokenizer()", "total += (model.compute(model.quiet(x)) == y).sum().item()")
    net, script = source.split("def evaluate")
    (tmp_path / "net.py").write_text(net)
    (tmp_path / "train.py").write_text(f"{TORCH}from net import Net\ndef evaluate{script}")
    monkeypatch.chdir(tmp_path)
    assert lint(["train.py"], Config()).findings == ()


def test_so_it_is_where_a_class_of_the_same_method_does() -> None:
    quiet = RIGHT["decorated"]
    loud = "    def predict(self, x):\n        return self.body(x).argmax(1)\n"
    assert told(program(loud + NET.replace("Net(", "Quiet(") + quiet)) == set()


def test_features_for_the_training_are_none_of_an_evaluation() -> None:
    source = TORCH + NET + "    def encode(self, x):\n        return self.body(x)\n"
    source += """
encoder, head = Net(), nn.Linear(4, 2)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
encoder.eval()
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(head(encoder.encode(x)), y).backward()
    optimizer.step()
"""
    assert "GC703" not in {code for code, _ in told(source)}


@pytest.mark.parametrize("quiet", [False, True])
def test_a_class_of_another_file_is_read(
    quiet: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = RIGHT["decorated"] if quiet else "    def predict(self, x):\n        return self.body(x)\n"
    (tmp_path / "net.py").write_text(TORCH + NET + method)
    script = program("", wrong=not quiet, net="from net import Net\n")
    (tmp_path / "train.py").write_text(script)
    monkeypatch.chdir(tmp_path)
    found = lint(["train.py"], Config()).findings
    assert {(one.code, one.location.line) for one in found if one.location} == marked(script)

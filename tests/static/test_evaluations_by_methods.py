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

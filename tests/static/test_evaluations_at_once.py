"""Evaluations by one forward on all of the data, each with what makes it right."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.findings import Finding, Severity
from gradclinic.static import observe_source
from tests.static.reading import TORCH

SCRIPT = """
from models import GCN

features, adjacency, labels, idx_train, idx_val = load_data()
model = GCN(features.shape[1], 7, dropout=0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

def evaluate():
    model.eval()
    output = model(features, adjacency)  # GC703
    return (output.argmax(1) == labels)[idx_val].float().mean().item()

for epoch in range(200):
    model.train()
    optimizer.zero_grad()
    output = model(features, adjacency)
    loss = F.cross_entropy(output[idx_train], labels[idx_train])
    loss.backward()
    optimizer.step()
    print(evaluate())
"""
AFTER_EACH_PASS = """
net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(20):
    net.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    net.eval()
    score = (net(x_test).argmax(1) == y_test).float().mean()  # GC703
    print(score.item())
"""


def told(source: str) -> list[Finding]:
    return [one for one in judge([observe_source(TORCH + source, "train.py")]) if one.code == "GC703"]


@pytest.mark.parametrize("source", [SCRIPT, AFTER_EACH_PASS])
def test_a_forward_in_eval_mode_after_each_update_is_noted(source: str) -> None:
    (finding,) = told(source)
    assert finding.location is not None
    assert "# GC703" in (TORCH + source).splitlines()[finding.location.line - 1]
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "    output = model(features, adjacency)  #",
            "    with torch.no_grad(): output = model(features, adjacency)  #",
        ),
        ("def evaluate", "@torch.no_grad()\ndef evaluate"),
        # One of them, when all is over.
        ("    print(evaluate())", "print(evaluate())"),
        # What is made in eval mode goes into the loss of what is trained next.
        (
            "    loss = F.cross_entropy(output[idx_train], labels[idx_train])",
            "    model.eval(); calm = model(features); model.train(); loss = F.mse_loss(output, calm)",
        ),
    ],
)
def test_an_evaluation_without_gradients_and_one_that_is_trained_through_are_right(
    old: str, new: str
) -> None:
    assert old in SCRIPT
    source = SCRIPT.replace(old, new)
    if "calm" in new:
        source = source.replace("    print(evaluate())\n", "")
    assert told(source) == []


def test_a_teacher_and_gradients_of_the_input_are_right() -> None:
    teacher = SCRIPT.replace(
        "output = model(features, adjacency)  #", "output = teacher(features, adjacency)  #"
    )
    assert told(teacher.replace("def evaluate", "teacher = GCN(3, 7, dropout=0.5)\n\ndef evaluate")) == []
    saliency = SCRIPT.replace(
        "    return (output", "    torch.autograd.grad(output.sum(), features)\n    return (output"
    )
    assert told(saliency) == []

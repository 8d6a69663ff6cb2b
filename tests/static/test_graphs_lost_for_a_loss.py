"""Losses computed of what has no graph: detached first, chosen, wrapped anew, made a leaf for silence."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

LOOP = """
from torch.autograd import Variable
import numpy as np
import others

model = nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    out = model(x)
    {body}
    loss.backward()
    optimizer.step()
"""


def loop(body: str) -> str:
    return TORCH + LOOP.format(body=body.strip().replace("\n", "\n    "))


@pytest.mark.parametrize(
    "body",
    [
        # A term whose input was detached trains nothing, whatever else trains the same layers.
        """
loss = F.mse_loss(out, y)
loss = loss + 0.1 * F.l1_loss(out.detach(), y)  # GC202
""",
        """
extra = F.l1_loss(out.data, y)  # GC202
loss = F.mse_loss(out, y) + extra
""",
        # Made a leaf, it goes through backward and reaches nothing.
        """
answer = out.argmax(1)  # GC201
loss = F.mse_loss(answer.float(), y)
loss.requires_grad = True
""",
        """
_, answer = torch.max(out, 1)  # GC201
loss = Variable(F.l1_loss(answer.float(), y), requires_grad=True)
""",
        """
with torch.no_grad():  # GC201
    out = model(x)
loss = F.cross_entropy(out, y)
loss.requires_grad_(True)
""",
        """
loss = F.cross_entropy(out, y)
loss = Variable(loss, requires_grad=True)  # GC201
""",
        """
each = [F.mse_loss(out, y), F.l1_loss(out, y)]
loss = torch.tensor(each, requires_grad=True).mean() / 2  # GC203
""",
        """
total = torch.tensor(0.0, requires_grad=True)
for part in (0, 1):
    total = total + F.mse_loss(out[part], y[part]).item()  # GC202
loss = total
""",
        # Numbers and settings train nothing.
        "loss = (out.detach() * others.cfg.weight).mean()  # GC201",
        "loss = (out.detach() - others.load_targets(y)).pow(2).mean()  # GC201",
        "loss = (out.detach() - np.sin(3.0) * y).pow(2).mean()  # GC201",
        # An output made a leaf: the layers before it are held by the optimizer and reached by nothing.
        """
out = torch.from_numpy(out.detach().numpy() * 2).requires_grad_()  # GC204
loss = F.mse_loss(out, y)
""",
    ],
)
def test_a_loss_without_the_graph_of_its_model_is_told(body: str) -> None:
    source = loop(body)
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize(
    "body",
    [
        # Both ways around, as of codes and what they stand for.
        "loss = F.mse_loss(out.detach(), model(-x)) + F.mse_loss(out, model(-x).detach())",
        # The target may carry the graph.
        "loss = F.mse_loss(out, y) + F.l1_loss(out.detach(), embed(x))",
        # What is computed of it after the cut has layers of its own.
        "loss = F.mse_loss(out, y) + F.cross_entropy(judge(out.detach()), y)",
        "head = nn.Linear(3, 3)\nloss = F.mse_loss(out, y) + F.cross_entropy(head(out.detach()), y)",
        # Answers pick, and numbers are printed.
        "best = out.argmax(1)\nloss = F.mse_loss(out.gather(1, best[:, None]), y)",
        "values, best = out.max(1)\nloss = F.mse_loss(values, y)\nprint((best == y).float().mean())",
        "best = out.argmax(1)\nloss = F.cross_entropy(out, y) + 0 * F.mse_loss(model(x), best)",
        # Leaves that are data.
        "x = Variable(x, requires_grad=True)\nloss = F.mse_loss(model(x), y)",
        "x = torch.tensor(x.numpy(), requires_grad=True)\nloss = F.mse_loss(model(x), y)",
        # Made a leaf for its own gradient, while the layers before it are trained as well.
        "seen = torch.tensor(out.detach().numpy())\nseen.requires_grad_()\nloss = (seen * out - y).mean()",
        "total = torch.tensor(0.0, requires_grad=True)\ntotal = total + F.mse_loss(out, y)\nloss = total",
        # What another file makes of the outputs has their graph, however its name begins.
        "loss = -(others.gather_log_probs(out, y) - model(x).detach()).mean()",
        "loss = (others.normalize_scores(out) - model(x).detach()).pow(2).mean()",
        "loss = (others.get_chances(out).log() * out.mean().detach()).mean()",
        # A parameter may come from anywhere.
        "loss = -(next(model.parameters()).exp() * out.detach()).mean()",
        "loss = -(others.log_alpha.exp() * out.detach()).mean()",
        "loss = -(others.temperature() * out.detach()).mean()",
        "loss = -(others.get_parameter(model).exp() * out.detach()).mean()",
    ],
)
def test_a_loss_that_trains_something_is_left_alone(body: str) -> None:
    assert told(loop(body)) == set()


KEPT = """
total = 0.0
for x, y in loader:
    extra = 0.0
    if started:
        extra = F.l1_loss(model(x), y)
    loss = F.mse_loss(model(x), y) + extra
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += {kept}
"""


def test_what_is_a_number_on_one_way_and_made_one_on_the_other_keeps_no_graph() -> None:
    head = TORCH + "model = nn.Linear(4, 3)\noptimizer = torch.optim.Adam(model.parameters())\n"
    for right in ("extra.item() if started else extra", "extra if not started else extra.item()"):
        assert told(head + KEPT.format(kept=right)) == set()
    faulty = head + KEPT.format(kept="loss  # GC212")
    assert told(faulty) == marked(faulty) != set()


TWO_NETWORKS = """
import others

class Trainer:
    def __init__(self, generator, judge, optimizer):
        self.generator = generator
        self.judge = judge
        self.optimizer = optimizer

    def objective(self, x, fake):
        _, real_features = self.judge(x)
        _, features = self.judge(fake)
        matching = nn.MSELoss()({compared})
        return F.l1_loss(fake, x) + matching

    def fit(self, loader):
        for x in loader:
            self.optimizer.zero_grad()
            self.objective(x, self.generator(x)).backward()
            self.optimizer.step()
"""


def test_a_term_of_which_both_sides_are_detached_trains_nothing_whatever_the_models_are() -> None:
    detached = "features.detach(), real_features.detach()"
    both = TORCH + TWO_NETWORKS.format(compared=f"{detached}  # GC202\n        ")
    assert told(both) == marked(both)
    for compared in ("features, real_features.detach()", "features.detach(), real_features", "features, x"):
        assert told(TORCH + TWO_NETWORKS.format(compared=compared)) == set()
    printed = TWO_NETWORKS.replace("+ matching", "; print(matching)").format(compared=detached)
    assert told(TORCH + printed) == set()


def test_a_loss_of_plain_data_that_is_subtracted_is_a_baseline() -> None:
    attack = """
from nets import encoder

def attack(image, y, change, optimizer):
    for step in range(100):
        optimizer.zero_grad()
        clean, moved = encoder(image).detach(), encoder(image + change){mark}
        loss = F.mse_loss(moved, clean.detach()) {sign} F.mse_loss(clean.detach(), y.detach())
        loss.backward()
        optimizer.step()
"""
    assert told(TORCH + attack.format(sign="-", mark="")) == set()
    added = TORCH + attack.format(sign="+", mark="  # GC202")
    assert told(added) == marked(added) != set()

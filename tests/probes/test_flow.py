"""`probe flow`: which parameters each loss term reaches, on a case written by a user."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

import gradclinic as gc
from gradclinic.errors import UsageError
from gradclinic.facts.variants import Reach


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.left = nn.Linear(4, 1)
        self.right = nn.Linear(4, 1)
        self.forgotten = nn.Linear(4, 1)

    def forward(self, x):
        hidden = torch.tanh(self.body(x))
        return {"left": self.left(hidden), "right": self.right(hidden)}


X = torch.randn(6, 3)


def left(outputs, batch):
    return outputs["left"].square().mean()


def right(outputs, batch):
    return (outputs["right"] - 1).square().mean()


def test_each_named_term_reaches_its_own_head_and_none_the_forgotten_one():
    flow = gc.probe_flow(gc.Case(TwoHeads(), X, terms={"left": left, "right": right}))
    reached = {term.name: {n for n, r in term.reach.items() if r is Reach.VALUE} for term in flow.terms}
    body = {"body.weight", "body.bias"}
    assert reached == {
        "left": body | {"left.weight", "left.bias"},
        "right": body | {"right.weight", "right.bias"},
    }
    assert flow.unreached == ("forgotten.weight", "forgotten.bias")


def test_terms_are_found_in_an_unmodified_loss_with_the_names_of_its_source():
    def loss(outputs, batch):
        fit = left(outputs, batch)
        pull = right(outputs, batch)
        size = sum(value.abs().mean() for value in outputs.values())
        return fit + 0.5 * pull - 0.1 * size

    model = TwoHeads()
    flow = gc.probe_flow(gc.Case(model, X, loss))
    assert flow.found
    assert [term.name for term in flow.terms] == ["fit", "pull", "size"]
    alone = gc.probe_flow(gc.Case(model, X, terms={"pull": right}, weights={"pull": 0.5}))
    assert flow.terms[1].norms == pytest.approx(alone.terms[0].norms)


def test_the_found_terms_sum_to_the_whole_gradient():
    def loss(outputs, batch):
        total = left(outputs, batch)
        for _ in range(2):
            total += right(outputs, batch) / 3
        return total / 2

    model = TwoHeads()
    case = gc.Case(model, X, loss)
    flow = gc.probe_flow(case)
    assert len(flow.terms) == 3
    whole = torch.autograd.grad(case.evaluate().total, model.right.bias)[0]
    shares = [term.norms["right.bias"] for term in flow.terms]
    assert sum(shares) == pytest.approx(float(whole.abs().sum()), rel=1e-5)


def test_zero_is_not_none():
    model = TwoHeads()
    with torch.no_grad():
        model.left.weight.zero_()
    flow = gc.probe_flow(gc.Case(model, X, terms={"left": left}))
    (term,) = flow.terms
    assert term.reach["body.weight"] is Reach.ZERO
    assert term.reach["right.weight"] is Reach.NONE


def test_terms_that_pull_against_each_other_are_named():
    terms = {"up": lambda out, b: -out["left"].sum(), "down": lambda out, b: out["left"].sum()}
    (pair,) = gc.probe_flow(gc.Case(TwoHeads(), X, terms=terms)).conflicts
    assert (pair.first, pair.second) == ("up", "down")
    assert pair.cosine == pytest.approx(-1.0)


def test_a_missing_label_is_made_up_and_said():
    def fit(outputs, batch):
        return (outputs["left"] - batch["left"]).square().mean()

    case = gc.Case(TwoHeads(), {"x": X}, terms={"fit": fit}, forward=lambda model, batch: model(batch["x"]))
    flow = gc.probe_flow(case)
    assert flow.made_up == ("left",)
    assert flow.terms[0].reached == 4
    assert set(case.batch) == {"x"}


def test_a_label_nothing_tells_the_shape_of_is_asked_for_in_one_line():
    case = gc.Case(
        TwoHeads(),
        {"x": X},
        terms={"fit": lambda out, batch: batch["colour"].mean()},
        forward=lambda model, batch: model(batch["x"]),
    )
    with pytest.raises(UsageError, match="asks for the label 'colour'"):
        gc.probe_flow(case)


def test_one_forward_and_one_backward_per_term():
    model = TwoHeads()
    counted = {"forward": 0, "backward": 0}

    def forward(module, args, out):
        counted["forward"] += 1
        hook = lambda grad: counted.__setitem__("backward", counted["backward"] + 1)  # noqa: E731
        out.register_hook(hook)

    model.body.register_forward_hook(forward)
    gc.probe_flow(gc.Case(model, X, terms={"left": left, "right": right}))
    assert counted == {"forward": 1, "backward": 2}


def test_the_case_comes_out_as_it_went_in():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    stream = torch.get_rng_state()
    gc.probe_flow(gc.Case(model, X, lambda out, batch: out.square().mean()))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(torch.get_rng_state(), stream)


CASE = """
import torch
from torch import nn
from gradclinic import Case

def make():
    model = nn.ModuleDict({"used": nn.Linear(3, 1), "spare": nn.Linear(3, 1)})
    return Case(model, torch.randn(5, 3), lambda out, batch: out.square().mean(),
                forward=lambda model, x: model["used"](x))
"""


def test_the_command_shows_the_table_and_its_json(gradclinic, tmp_path):
    (tmp_path / "case.py").write_text(CASE)
    ended = gradclinic("probe", "flow", "case.py:make", "--fail-on", "never")
    assert ended.code == 0, ended.err
    assert "loss      2/4" in ended.out
    assert "2 of 4 parameters are reached by no term: spare.weight, spare.bias" in ended.out
    document = json.loads(gradclinic("probe", "flow", "case.py:make", "--format", "json").out)
    assert document["command"] == "probe flow"
    assert document["tables"][0]["rows"][0][:2] == ["loss", "2/4"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("probe", "flow", "case.py:nothing"), "no function 'nothing'"),
        (("probe", "flow", "case.py"), "is no target"),
        (("probe", "flwo", "case.py:make"), "invalid choice: 'flwo'"),
        (("probe", "flow", "case.py:make", "--budget", "soon"), "'soon' is no time"),
    ],
)
def test_wrong_usage_is_one_line(gradclinic, tmp_path, words, said):
    (tmp_path / "case.py").write_text(CASE)
    ended = gradclinic(*words)
    assert ended.code == 2
    assert said in ended.error_line

"""`probe compile`: the potential with each documented fault is told by its own code, healthy by none."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

import gradclinic as gc
from gradclinic.engine import judge
from gradclinic.errors import UsageError
from gradclinic.facts import Observation, Source
from gradclinic.facts.variants import Reach
from gradclinic.probes._measure import integer_meaning
from gradclinic.probes.compile import probe_compile
from tests.conftest import SOURCE
from tests.probes.conftest import POTENTIAL


def findings(report):
    return judge([Observation(Source.PROBE, ((report,),))])


FAULTS = {
    "detach-kept": ("GC807", "compiled.py", "make_fx(function)", "autograd saved"),
    "create-graph-off": ("GC803", "compiled.py", "make_fx(function)", "eval mode"),
    "ghost-slice": ("GC805", "model.py", "index_add(0, frame.mapping", "6 of 31 rows"),
    "normalisation-off": (
        "GC806",
        "compiled.py",
        "make_fx(function)",
        "1/6 of eager's (6, the size of dimension 0",
    ),
    "another-tasks-constant": ("GC808", "model.py", "self.cutoff", "2.5 where this model has 3"),
    "buffer-not-promoted": ("GC808", "compiled.py", "make_fx(function)", "the tensor fitting.bias"),
    "backend-errs": ("GC804", "compiled.py", "torch.compile(graph", "the backend careless"),
    "entry-without-grad": ("GC801", "compiled.py", "make_fx(function)", "without requires_grad"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_documented_fault_is_named_first_with_its_line(potential, fault):
    code, file, line, said = FAULTS[fault]
    found = findings(probe_compile(potential.make(fault, backend="eager"), ["by hand"]))
    assert [finding.code for finding in found] == [code]
    assert said in found[0].message
    assert found[0].location.path.endswith(file)
    source = (POTENTIAL / file).read_text().splitlines()
    assert line in source[found[0].location.line - 1]


def test_the_example_lists_no_fault_that_is_not_tested(potential):
    import compiled

    assert set(compiled.FAULTS) == set(FAULTS)


def test_the_healthy_potential_agrees_to_rounding_and_raises_nothing(potential):
    report = probe_compile(potential.make(), ["by hand", "traced", "aot_eager"])
    assert findings(report) == ()
    assert report.dtype == "float64"
    for variant in report.variants:
        assert not variant.error
        assert variant.worst() <= 1e-10


def test_counts_alone_would_miss_a_gradient_that_is_wrong_everywhere(potential):
    (variant,) = probe_compile(potential.make("detach-kept", backend="eager"), ["by hand"]).variants
    energy, force, _ = variant.terms
    assert energy.agreement.error == 0
    assert not force.agreement.within(1e-3)
    assert not variant.wrong_values(1e-10)
    assert force.differing(1e-10)[0] == "descriptor.type_embedding.weight"


def test_a_legitimate_zero_is_no_loss(potential):
    """The last bias has no force gradient: None in eager, zeros compiled."""
    (variant,) = probe_compile(potential.make(), ["aot_eager"]).variants
    last = next(p for p in variant.terms[1].parameters if p.name == "fitting.net.4.bias")
    assert last.reference is Reach.NONE
    assert last.variant is not Reach.VALUE
    assert not last.lost


def test_two_faults_at_once_are_both_named(potential):
    from compiled import record
    from model import fold

    case = potential.make()

    def eval_and_kept(model):
        graph = record(model, case.batch, [], "create-graph-off")
        return lambda frame: fold(graph(frame.coord, frame.types, frame.neighbours), frame)

    twice = gc.Case(case.model, case.batch, terms=case.terms, variants={"twice": eval_and_kept})
    assert {finding.code for finding in findings(probe_compile(twice, ["twice"]))} == {"GC803", "GC807"}


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 2).double()
        self.forwards = 0
        self.backwards = 0

    def forward(self, x):
        self.forwards += 1
        out = self.net(x)
        out.register_hook(self._count)
        return out

    def _count(self, grad):
        self.backwards += 1


def test_a_variant_costs_one_forward_and_one_backward_per_term():
    model, seen = Counted(), []
    twin = Counted()

    def variant(_):
        seen.append((twin.forwards, twin.backwards))
        twin.net = model.net
        return lambda x: twin(x)

    terms = {"a": lambda out, x: out.square().mean(), "b": lambda out, x: out.abs().sum()}
    x = torch.randn(4, 3, dtype=torch.float64)
    assert probe_compile(gc.Case(model, x, terms=terms, variants={"v": variant}), ["v"]).agrees
    assert (twin.forwards, twin.backwards) == (1, 2)


def test_a_float32_model_is_compared_in_float64():
    case = gc.Case(nn.Linear(3, 2), torch.randn(4, 3), lambda out, x: out.square().mean())
    report = probe_compile(case, ["traced"])
    assert report.dtype == "float64"
    assert report.agrees
    assert case.model.weight.dtype is torch.float32


def test_a_variant_bound_to_the_original_model_is_compared_in_its_own_precision():
    model = nn.Linear(3, 2)
    case = gc.Case(
        model,
        torch.randn(4, 3),
        lambda out, x: out.square().mean(),
        variants={"bound": lambda _: lambda x: model(x)},
    )
    report = probe_compile(case, ["bound"])
    assert report.dtype == "float32"
    assert report.agrees


def test_a_variant_with_weights_of_its_own_is_compared_by_name():
    import copy

    model = nn.Linear(3, 2).double()
    x = torch.randn(4, 3, dtype=torch.float64)
    case = gc.Case(
        model,
        x,
        lambda out, x: out.square().mean(),
        variants={"copy": copy.deepcopy, "wrapped copy": lambda model: nn.Sequential(copy.deepcopy(model))},
    )
    assert probe_compile(case, ["copy", "wrapped copy"]).agrees


def test_an_error_of_a_variant_is_a_row_and_the_others_are_still_compared():
    def broken(model):
        raise RuntimeError("no backend for this")

    case = gc.Case(
        nn.Linear(3, 2),
        torch.randn(4, 3),
        lambda out, x: out.square().mean(),
        variants={"broken": broken, "fine": lambda model: model},
    )
    broken_row, fine_row = probe_compile(case, ["broken", "fine"]).variants
    assert broken_row.error == "RuntimeError: no backend for this"
    assert fine_row.agrees(1e-10)


def test_an_error_inside_double_backward_of_torch_compile_is_a_row(potential):
    case = potential.make()
    plain = gc.Case(
        case.model,
        case.batch,
        terms=case.terms,
        variants={"plain": lambda model: torch.compile(model, backend="aot_eager")},
    )
    (row,) = probe_compile(plain, ["plain"]).variants
    assert row.error or row.agrees(1e-10)


def test_an_unknown_variant_is_one_line():
    case = gc.Case(nn.Linear(3, 2), torch.randn(4, 3), lambda out, x: out.mean())
    with pytest.raises(UsageError, match=r"no variant 'tracd'; this case can be run as traced, aot_eager"):
        probe_compile(case, ["tracd"])


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (6.0, "6, atoms"),
        (1 / 6, "6, atoms"),
        (6**0.5, "the square root of 6, atoms"),
        (36.0, "the square of 6, atoms"),
        (1.0, ""),
        (5.5, ""),
        (7.0, ""),
    ],
)
def test_a_factor_is_looked_up_among_the_sizes(ratio, said):
    assert integer_meaning(ratio, [(6, "atoms"), (3, "axes")]) == said


PROJECT = """
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from gradclinic import Case
from gradclinic.compile.tracing import trace

X = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)


class Force(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).double()

    def forward(self, x):
        return -torch.autograd.grad(self.net(x).sum(), x, create_graph=True)[0]


def ours(model):
    return RECORD


def make():
    return Case(Force(), X, terms={"force": lambda f, x: (f - 1).square().mean()}, variants={"ours": ours})
"""
RIGHT = PROJECT.replace("RECORD", "trace(lambda x: model(x), (X,))")
WRONG = PROJECT.replace("RECORD", "make_fx(lambda x: model(x))(X)")


def test_the_written_test_passes_and_fails_once_the_fault_is_put_back(gradclinic, tmp_path):
    case = tmp_path / "case.py"
    case.write_text(RIGHT)
    written = gradclinic("probe", "compile", "case.py:make", "--write-test", "tests/test_gradients.py")
    assert written.code == 0, written.err
    assert "tests/test_gradients.py holds these gradients" in written.out

    def outcome():
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_gradients.py"]
        env = os.environ | {"PYTHONPATH": str(SOURCE)}
        ended = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        return ended.stdout

    assert "3 passed" in outcome()
    case.write_text(WRONG)
    broken = outcome()
    assert "1 failed" in broken
    assert "gradients differ from eager" in broken


def test_the_command_names_the_cause_in_json(gradclinic, tmp_path):
    (tmp_path / "case.py").write_text(WRONG)
    ended = gradclinic("probe", "compile", "case.py:make", "--variants", "ours", "--format", "json")
    assert ended.code == 1, ended.err
    document = json.loads(ended.out)
    assert [finding["code"] for finding in document["findings"]] == ["GC807"]
    assert document["findings"][0]["sources"] == ["probe"]
    assert {table["title"].partition(",")[0] for table in document["tables"]} >= {
        "one thing changed at a time"
    }


@pytest.mark.inductor
def test_second_order_gradients_through_inductor_are_those_of_eager(potential):
    case = potential.water()
    coord = case.batch.coord.clone().requires_grad_(True)
    example = (coord, case.batch.types, case.batch.neighbours)
    fast = gc.verified_compile(case.model.lower, example, backend="inductor")
    assert {gap.term for gap in fast.proofs[0].terms} == {"energy", "force", "virial"}
    assert fast.proofs[0].worst() <= 1e-10

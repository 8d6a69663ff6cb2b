"""A case says what it needs in one line, and a target names the function that makes one."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from gradclinic import Case, load_case
from gradclinic.errors import UsageError


def mse(outputs, batch):
    return nn.functional.mse_loss(outputs, batch[1])


BATCH = (torch.randn(5, 3), torch.randn(5, 1))


def test_a_tuple_batch_gives_its_first_item_to_the_model_and_all_of_it_to_the_loss():
    model = nn.Linear(3, 1)
    seen = Case(model, BATCH, mse).evaluate()
    assert torch.equal(seen.outputs, model(BATCH[0]))
    assert torch.equal(seen.total, mse(model(BATCH[0]), BATCH))


def test_terms_are_kept_apart_and_summed_with_their_weights():
    terms = {"fit": mse, "size": lambda out, batch: out.square().mean()}
    seen = Case(nn.Linear(3, 1), BATCH, terms=terms, weights={"size": 0.25}).evaluate()
    assert set(seen.terms) == {"fit", "size"}
    torch.testing.assert_close(seen.total, seen.terms["fit"] + 0.25 * seen.terms["size"])


def test_a_loss_may_return_its_terms_by_name():
    case = Case(nn.Linear(3, 1), BATCH, lambda out, batch: {"a": out.mean(), "b": mse(out, batch)})
    assert list(case.evaluate().terms) == ["a", "b"]


def test_the_first_batch_of_a_loader_is_the_batch():
    case = Case(nn.Linear(3, 1), loss=mse, loader=lambda: [BATCH, BATCH])
    assert case.batch is BATCH
    assert len(list(case.batches())) == 2


def test_an_optimizer_instance_is_rebuilt_over_a_copy_with_its_state_and_left_alone():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    mse(model(BATCH[0]), BATCH).backward()
    optimizer.step()
    twin = copy.deepcopy(model)
    remade = Case(model, BATCH, mse, optimizer=optimizer).make_optimizer(twin)
    assert remade.param_groups[0]["params"][0] is twin.weight
    momentum = remade.state[twin.weight]["momentum_buffer"]
    assert torch.equal(momentum, optimizer.state[model.weight]["momentum_buffer"])
    assert momentum is not optimizer.state[model.weight]["momentum_buffer"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Case(nn.ReLU(), BATCH, mse), "ReLU has no parameters"),
        (lambda: Case(nn.Linear(3, 1).requires_grad_(False), BATCH, mse), "requires_grad=False"),
        (lambda: Case("resnet", BATCH, mse), "a str, expected a torch.nn.Module"),
        (lambda: Case(nn.Linear(3, 1), BATCH), "neither was given"),
        (lambda: Case(nn.Linear(3, 1), BATCH, mse, terms={"a": mse}), "both was given"),
        (lambda: Case(nn.Linear(3, 1), BATCH, 3.0), "a float, expected a function"),
        (lambda: Case(nn.Linear(3, 1), BATCH, terms={"a": 1}), "must map names to functions"),
        (lambda: Case(nn.Linear(3, 1), BATCH, terms={"a": mse}, weights={"b": 1.0}), "weights name b"),
        (lambda: Case(nn.Linear(3, 1), None, mse), "has no batch"),
        (lambda: Case(nn.Linear(3, 1), BATCH, lambda o, b: o).evaluate(), "shape (5, 1), expected a scalar"),
        (lambda: Case(nn.Linear(3, 1), BATCH, lambda o, b: 1.0).evaluate(), "a float, expected a scalar"),
        (lambda: Case(_on_two_devices(), BATCH, mse), "2 devices (0.weight on cpu, 1.weight on meta)"),
        (
            lambda: Case(nn.Linear(3, 1), BATCH, mse, optimizer=lambda p: None).make_optimizer(),
            "None, expected a torch optimizer",
        ),
    ],
)
def test_a_case_that_cannot_work_says_why_in_one_line(make, said):
    with pytest.raises(UsageError) as caught:
        make()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def _on_two_devices() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 1), nn.Linear(1, 1).to("meta"))


MAKES = """
from torch import nn, randn
from neighbour import WIDTH
from gradclinic import Case

def make():
    return Case(nn.Linear(WIDTH, 1), randn(2, WIDTH), lambda out, batch: out.mean())

def fails():
    raise ValueError("two\\nlines")

def wrong():
    return 3

NUMBER = 4
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "neighbour.py").write_text("WIDTH = 7\n")
    (tmp_path / "patient.py").write_text(MAKES)
    (tmp_path / "broken.py").write_text("def make(:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "neighbour", raising=False)
    monkeypatch.delitem(sys.modules, "patient", raising=False)
    return tmp_path


@pytest.mark.parametrize("target", ["patient.py:make", "patient:make"])
def test_a_target_is_a_file_or_a_module_with_its_neighbours_importable(project, target):
    assert load_case(target).model.in_features == 7


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("patient.py", "is no target"),
        ("missing.py:make", "missing.py does not exist"),
        ("no.such.module:make", "cannot be imported: ModuleNotFoundError"),
        ("broken.py:make", "cannot be imported: SyntaxError"),
        ("patient.py:mkae", "no function 'mkae'; it has make, fails, wrong"),
        ("patient.py:NUMBER", "a int, expected a function"),
        ("patient.py:fails", "raised ValueError: two lines (patient.py:10)"),
        ("patient.py:wrong", "returned a int, expected a gradclinic.Case"),
    ],
)
def test_a_target_that_gives_no_case_says_why_in_one_line(project, target, said):
    with pytest.raises(UsageError) as caught:
        load_case(target)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_importing_the_package_and_the_case_needs_no_torch():
    code = "import sys, gradclinic; gradclinic.Case; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

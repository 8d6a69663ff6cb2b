"""`gradclinic probe` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradclinic.cli import main
from tests.conftest import Command, Ended

MODEL = """
import torch
from torch import nn

from gradclinic import Case


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.score(x).softmax(0))


def batch():
    torch.manual_seed(0)
    return torch.randn(8, 4), torch.arange(8) % 3


def loss(out, batch):
    return nn.functional.cross_entropy(out, batch[1])


def sick():
    return Case(Mixing(), batch(), loss)


def healthy():
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
    return Case(model, batch(), loss, optimizer=lambda p: torch.optim.Adam(p, lr=1e-2))


def window(model, pieces):
    for piece in pieces:
        loss(model(piece[0]), piece).backward()


def a_number():
    return 3


def no_parameters():
    return Case(nn.ReLU(), batch(), loss)


def not_scalar():
    return Case(nn.Linear(4, 3), batch(), lambda out, batch: out)


def two_devices():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
    model[1].to("meta")
    return Case(model, batch(), loss)


def wrong_shape():
    return Case(nn.Linear(5, 3), batch(), loss)


def batch_elsewhere():
    x, y = batch()
    return Case(nn.Linear(4, 3), (x.to("meta"), y), loss)
"""


@pytest.fixture(autouse=True)
def case_file(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text(MODEL)


@pytest.fixture
def in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The command without a process of its own: importing torch takes longer than most experiments."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Ended:
        code = main(words)
        written = capsys.readouterr()
        return Ended(code, written.out, written.err)

    return run


def test_a_sick_model_is_named_with_code_and_line(gradclinic: Command) -> None:
    ended = gradclinic("probe", "batch", "case.py:sick")
    assert ended.code == 1
    assert "case.py:13: error GC412 samples-mixed" in ended.out
    assert ended.out.startswith("batch: samples are mixed, first in Mixing")
    assert ended.err == ""


def test_json_holds_conclusion_numbers_and_findings(in_process: Command) -> None:
    ended = in_process(
        "probe", "accumulate", "case.py:healthy", "--window", "case.py:window", "--format", "json"
    )
    document = json.loads(ended.out)
    assert ended.code == 1
    assert (document["schema"], document["command"], document["target"]) == (
        1,
        "probe accumulate",
        "case.py:healthy",
    )
    assert [finding["code"] for finding in document["findings"]] == ["GC106"]
    assert document["findings"][0]["location"]["line"] == 35
    assert document["findings"][0]["sources"] == ["probe"]
    assert document["conclusion"].startswith("accumulate: your loop gives 4 times the gradient")
    assert document["measured"]["Accumulation"]["weights"] == pytest.approx([0.25] * 4)


def test_the_rate_range_draws_its_curve_for_terminal_and_page(in_process: Command, tmp_path: Path) -> None:
    ended = in_process("probe", "lr", "case.py:healthy", "--html", "lr.html")
    assert ended.code == 0
    assert "•" in ended.out
    assert "lr: train with" in ended.out
    page = (tmp_path / "lr.html").read_text()
    assert "<svg" in page
    assert "http" not in page


def test_resume_loads_in_a_fresh_process(gradclinic: Command) -> None:
    ended = gradclinic("probe", "resume", "case.py:healthy", "--steps", "2")
    assert ended.code == 0
    assert "2 steps after a reload in a fresh process are equal bit for bit" in ended.out


def test_a_spent_budget_ends_the_experiment_and_still_reports(in_process: Command) -> None:
    ended = in_process("probe", "overfit", "case.py:healthy", "--budget", "1ms")
    assert ended.code == 0
    assert ended.out.startswith("overfit: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("overfit", "nowhere.py:make"), "nowhere.py does not exist"),
        (("overfit", "case.py:make"), "case.py has no function 'make'"),
        (("overfit", "no.such.module:make"), "no.such.module cannot be imported: ModuleNotFoundError"),
        (("init", "case.py:a_number"), "case.py:a_number returned a int, expected a gradclinic.Case"),
        (("lr", "case.py:no_parameters"), "ReLU has no parameters, so there is nothing to train"),
        (("batch", "case.py:two_devices"), "live on 2 devices (0.weight on cpu, 1.weight on meta)"),
        (("init", "case.py:not_scalar"), "the loss term 'loss' has shape (8, 3), expected a scalar"),
        (("overfit", "case.py:wrong_shape"), "the case failed"),
        (("overfit", "case.py:batch_elsewhere"), "the batch is on meta and the model on cpu"),
        (
            ("overfit", "case.py:healthy", "--budget", "soon"),
            "'soon' is no time; write it like 60s, 2m or 1.5h",
        ),
        (
            ("accumulate", "case.py:healthy", "--window", "case.py:nothing"),
            "case.py has no function 'nothing'",
        ),
        (("lr", "case.py:healthy", "--html", "no/such/place.html"), "cannot write the picture"),
    ],
)
def test_bad_input_is_one_clear_line(in_process: Command, words: tuple[str, ...], said: str) -> None:
    ended = in_process("probe", *words)
    assert ended.code == 2
    assert said in ended.error_line
    assert ended.out == ""

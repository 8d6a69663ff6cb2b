"""`gradclinic run` keeps what it saw, and only then and there."""

from __future__ import annotations

import pytest

from gradclinic.store.folder import files_of, resolve, runs_in
from gradclinic.store.reader import read

KILLS_ITSELF = """\
import os
import pathlib
import signal
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
while True:
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if any(pathlib.Path(".gradclinic").glob("runs/*/rank0.sqlite")):
        os.kill(os.getpid(), signal.SIGKILL)
"""

TRAINS_IN_A_CHILD = """\
import torch
import torch.multiprocessing as processes

def train(number):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 2)).square().mean().backward()
        optimizer.step()

if __name__ == "__main__":
    processes.spawn(train, nprocs=2)
"""


def test_a_run_is_kept_with_its_diagnosis(gradclinic, sick_script, tmp_path):
    ended = gradclinic("run", "train.py")
    run = read(resolve(str(tmp_path)))
    assert ended.code == 1
    assert run.about["target"] == "train.py"
    assert len(run.trainings[0].steps) == 20
    diagnosis = run.documents["diagnosis"]
    assert diagnosis["findings"][0]["code"] == "GC109"
    assert diagnosis["excerpts"][0]["marked"] == 12
    assert len(diagnosis["checklist"]) == 14
    assert {event["kind"] for event in run.documents["tape"]["events"]} >= {"zero_grad", "backward", "step"}
    assert sum(one["gradient"] for one in run.documents["memory"]["held"]) == 4 * 5


def test_a_script_that_kills_itself_leaves_what_it_did(gradclinic, tmp_path):
    (tmp_path / "train.py").write_text(KILLS_ITSELF)
    assert gradclinic("run", "train.py").code == -9
    run = read(resolve(str(tmp_path)))
    assert run.state == "ended without a word"
    assert len(run.trainings[0].steps) > 2


def test_nothing_is_kept_when_the_project_does_not_want_it(gradclinic, sick_script, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.gradclinic]\nstore = false\n")
    assert gradclinic("run", "train.py").code == 1
    assert not (tmp_path / ".gradclinic").exists()


@pytest.mark.parametrize(("words", "lines"), [((), 1), (("--no-store",), 0)])
def test_a_folder_that_cannot_be_written_is_one_line_and_no_more(
    gradclinic, sick_script, tmp_path, words, lines
):
    (tmp_path / ".gradclinic").write_text("in the way")
    ended = gradclinic("run", *words, "train.py")
    assert ended.code == 1
    assert sum("is not kept" in line for line in ended.err.splitlines()) == lines
    assert "GC109" in ended.err


def test_every_process_that_trains_has_its_own_file(gradclinic, tmp_path):
    (tmp_path / "train.py").write_text(TRAINS_IN_A_CHILD)
    assert gradclinic("run", "train.py").code == 0
    (run,) = runs_in(tmp_path)
    files = list(files_of(run))
    assert len(files) == 2
    assert all(len(read(path).trainings[0].steps) == 3 for path in files)
    assert "diagnosis" in read(resolve(str(tmp_path))).documents

"""What is told to a store is there to be read: at once, in short, and after any end."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from array import array
from itertools import pairwise
from math import inf, nan
from pathlib import Path

import pytest

from gradclinic.facts import Actor, ActorKind
from gradclinic.facts.training import Sample, Step, TensorInfo
from gradclinic.store.folder import files_of, new_run, resolve, runs_in
from gradclinic.store.reader import read, state_of
from gradclinic.store.writer import Store
from tests.conftest import SOURCE

OPTIMIZER = Actor("optimizer-1", ActorKind.OPTIMIZER, "optimizer", "AdamW")


def _store(folder: Path, tensors: int = 3) -> Store:
    store = Store(folder, {"target": "train.py"})
    store.introduced(OPTIMIZER, tuple(TensorInfo(f"layer.{i}", (2, 2), "Linear") for i in range(tensors)))
    return store


def _train(store: Store, first: int, count: int, tensors: int = 3) -> None:
    numbers = array("d", [0.5]) * tensors
    for index in range(first, first + count):
        step = Step(index, 1.0 / (index + 1), 2.0, 1.0, (0.1,), limit=1.0, gradients=numbers)
        store.updated(OPTIMIZER.id, step)
        if index % 10 == 0:
            store.sampled(OPTIMIZER.id, Sample(index, numbers, numbers))


def test_what_was_told_can_be_read(tmp_path):
    store = _store(tmp_path / "run")
    _train(store, 0, 30)
    store.keep("diagnosis", {"findings": []})
    store.finish()
    run = read(resolve(str(tmp_path / "run")))
    (training,) = run.trainings
    assert (training.name, training.type) == ("optimizer", "AdamW")
    assert [tensor.name for tensor in training.tensors] == ["layer.0", "layer.1", "layer.2"]
    assert [step.index for step in training.steps] == list(range(30))
    assert training.steps[4].loss == pytest.approx(0.2)
    assert training.steps[4].limit == 1.0
    assert training.gradients[4] == (4, array("f", [0.5, 0.5, 0.5]))
    assert [sample.index for sample in training.samples] == [0, 10, 20]
    assert run.documents == {"diagnosis": {"findings": []}}
    assert run.state == "finished"


def test_it_is_read_while_it_is_written(tmp_path):
    store = _store(tmp_path / "run")
    _train(store, 0, 10)
    store.write()
    path = resolve(str(tmp_path / "run"))
    about, before = state_of(path)
    assert about["target"] == "train.py"
    assert read(path).state == "running"
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM steps").fetchone() == (10,)
    # A reader in the middle of reading neither stops the writer nor sees its work.
    _train(store, 10, 10)
    store.write()
    assert store.problem == ""
    assert reader.execute("SELECT count(*) FROM steps").fetchone() == (10,)
    reader.close()
    assert len(read(path).trainings[0].steps) == 20
    assert state_of(path)[1] != before


def test_a_long_run_stays_short_and_keeps_its_beginning_and_its_end(tmp_path):
    store, tensors = _store(tmp_path / "run", 2000), 2000
    numbers = array("d", [0.5]) * tensors
    sizes = []
    # Not every update is told, as in a loop too fast to write them all, and none at an even number.
    for index in range(7, 400_000, 10):
        store.updated(OPTIMIZER.id, Step(index, 1.0, 2.0, 1.0, (0.1,), gradients=numbers))
        if index % 1000 == 997:
            store.write()
            sizes.append(store.path.stat().st_size)
    store.finish()
    with sqlite3.connect(store.path) as connection:
        steps = [step for (step,) in connection.execute("SELECT step FROM steps ORDER BY step")]
        (arrays,) = connection.execute("SELECT count(*) FROM gradients").fetchone()
    assert steps[0] == 7
    assert steps[-1] == 399_997
    assert 3_000 < len(steps) <= 12_100
    assert 500 < arrays <= 1_600
    # No stretch of the run is forgotten.
    assert max(later - earlier for earlier, later in pairwise(steps)) <= 200
    # Half of the run later the file is no larger: freed pages are used again.
    assert sizes[-1] <= 1.2 * sizes[len(sizes) // 2] < 20_000_000


def test_what_is_not_a_number_is_marked_once(tmp_path):
    store = _store(tmp_path / "run")
    for index, loss in enumerate([1.0, nan, nan, inf]):
        store.updated(OPTIMIZER.id, Step(index, loss, 1.0, 1.0, (0.1,)))
    store.updated(OPTIMIZER.id, Step(4, 1.0, nan, nan, (0.1,), scale=8.0, skipped=True))
    store.finish()
    run = read(store.path)
    assert [(event.step, event.text) for event in run.events] == [
        (1, "the loss is nan"),
        (3, "the loss is inf"),
        (4, "the scaler skipped this update"),
    ]
    assert [step.skipped for step in run.trainings[0].steps] == [False] * 4 + [True]


WRITES_FOR_EVER = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from tests.store.test_writing import _store, _train
store = _store(Path(sys.argv[1]))
for first in range(0, 10**9, 7):
    _train(store, first, 7)
    store.write()
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_kill_at_any_moment_leaves_a_sound_file(tmp_path, seed):
    words = [sys.executable, "-c", WRITES_FOR_EVER, str(tmp_path / "run"), str(SOURCE), str(SOURCE.parent)]
    process = subprocess.Popen(words)
    while not any(files_of(tmp_path / "run")):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(random.Random(seed).uniform(0.05, 0.4))
    process.send_signal(signal.SIGKILL)
    process.wait()
    path = resolve(str(tmp_path / "run"))
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        steps = [step for (step,) in connection.execute("SELECT step FROM steps ORDER BY step")]
        arrays = [step for (step,) in connection.execute("SELECT step FROM gradients ORDER BY step")]
    # Whole batches only, the same in both tables; what lies between first and last may be thinned by now.
    assert (steps[-1] + 1) % 7 == 0
    assert steps[-1] == arrays[-1]
    assert set(arrays) <= set(steps)
    assert arrays[:64] == list(range(steps[-1] + 1))[:64]
    assert read(path).state == "ended without a word"


def test_a_forked_child_leaves_the_file_of_its_parent_alone(tmp_path):
    store = _store(tmp_path / "run")
    _train(store, 0, 5)
    child = os.fork()
    if child == 0:
        _train(store, 5, 5)
        store.finish()
        os._exit(0)
    os.waitpid(child, 0)
    assert not (tmp_path / "run").exists()
    store.finish()
    assert len(read(store.path).trainings[0].steps) == 5


def test_a_place_that_cannot_be_written_is_said_and_costs_nothing_more(tmp_path):
    (tmp_path / ".gradclinic").write_text("in the way")
    store = _store(new_run("train.py", tmp_path))
    _train(store, 0, 5)
    store.write()
    assert store.problem.startswith("the run is not kept in ")
    _train(store, 5, 5)
    store.finish()
    assert store.path is None


def test_the_latest_run_is_found(tmp_path):
    assert runs_in(tmp_path) == []
    for name in ("one.py", "two.py"):
        store = _store(new_run(name, tmp_path))
        _train(store, 0, 3)
        store.finish()
    assert [run.name.rpartition("-")[2] for run in runs_in(tmp_path)] == ["two", "one"]
    assert resolve(str(tmp_path)).parent.name.endswith("-two")
    assert (tmp_path / ".gradclinic" / ".gitignore").read_text() == "*\n"

"""A resumed run ends with the bits of one that was never interrupted."""

from __future__ import annotations

import io
import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradclinic.train import CheckpointError, TrainStep, TrainStepError
from tests.forks import server
from tests.train.killed import EPOCHS, built, everything, run
from tests.train.plain import same_bits, small_model, weights_of


def train(model: nn.Module, step: TrainStep, loader: Iterable[Any]) -> None:
    while step.epoch < EPOCHS:
        for x, y in step.over(loader):
            step(nn.functional.mse_loss(model(x), y), weight=len(x))


def interrupted(at: int, precision: str, stateful: bool) -> list[Tensor]:
    model, step, loader = built(precision, stateful)
    while step.epoch < EPOCHS:
        for x, y in step.over(loader):
            step(nn.functional.mse_loss(model(x), y), weight=len(x))
            if step.losses == at:
                file = io.BytesIO()
                torch.save({"model": model.state_dict(), "step": step.state_dict()}, file)
                file.seek(0)
                saved = torch.load(file, weights_only=True)
                model, step, loader = built(precision, stateful)
                torch.randn(100)
                model.load_state_dict(saved["model"])
                step.load_state_dict(saved["step"])
                break
    return everything(model, step)


@pytest.mark.parametrize("stateful", [False, True], ids=["plain loader", "stateful loader"])
@pytest.mark.parametrize(
    "at",
    [
        pytest.param(3, id="after an update"),
        pytest.param(5, id="inside a window"),
        pytest.param(11, id="at the last batch of a pass"),
        pytest.param(12, id="at the first batch of the next"),
    ],
)
def test_state_of_any_place_continues_bit_for_bit(at: int, stateful: bool) -> None:
    model, step, loader = built(stateful=stateful)
    train(model, step, loader)
    assert same_bits(everything(model, step), interrupted(at, "fp32", stateful))


def test_the_loss_scale_is_resumed_too() -> None:
    model, step, loader = built("fp16")
    train(model, step, loader)
    assert same_bits(everything(model, step), interrupted(7, "fp16", False))


def test_a_sampler_with_state_continues_where_it_was() -> None:
    class Counting(torch.utils.data.Sampler[int]):
        """Hands out 0, 1, 2 … and remembers how far it is, instead of a seed."""

        def __init__(self) -> None:
            self.next = 0

        def __iter__(self) -> Any:
            while self.next < 12:
                self.next += 1
                yield self.next - 1
            self.next = 0

        def state_dict(self) -> dict[str, int]:
            return {"next": self.next}

        def load_state_dict(self, state: dict[str, int]) -> None:
            self.next = state["next"]

    def fresh() -> tuple[nn.Module, TrainStep, Any]:
        model = small_model(torch.float32)
        step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1))
        return model, step, torch.utils.data.DataLoader(list(range(12)), batch_size=3, sampler=Counting())

    model, step, loader = fresh()
    for batch in step.over(loader):
        step(model(torch.ones(5)).sum())
        if batch.tolist() == [3, 4, 5]:
            saved = step.state_dict()
            break
    model, step, loader = fresh()
    step.load_state_dict(saved)
    seen = []
    for batch in step.over(loader):
        seen.append(batch.tolist())
        step(model(torch.ones(5)).sum())
    assert seen == [[6, 7, 8], [9, 10, 11]]


def test_killed_twenty_times_the_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    """`kill -9` at random moments, some of them inside a save."""
    chance = random.Random(7)
    for _ in range(20):
        progress = server.Value("i", 0)
        process = server.Process(target=run, args=(str(tmp_path), progress))
        process.start()
        enough = chance.randint(0, 4)
        while progress.value < enough and process.is_alive():
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.03))
        assert process.is_alive()
        process.kill()
        process.join()
    last = server.Process(target=run, args=(str(tmp_path), progress))
    last.start()
    last.join()
    assert last.exitcode == 0
    model, step, loader = built()
    train(model, step, loader)
    finished = torch.load(tmp_path / "finished", weights_only=True)
    assert same_bits(everything(model, step), finished)


def saved_twice(directory: Path) -> tuple[nn.Module, TrainStep, list[Path]]:
    model, step, loader = built()
    paths = []
    for x, y in step.over(loader):
        if step(nn.functional.mse_loss(model(x), y), weight=len(x)):
            paths.append(Path(step.save(str(directory))))
        if len(paths) == 2:
            break
    return model, step, paths


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def altered(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("harm", [cut_short, altered, Path.unlink])
@pytest.mark.parametrize("file", ["__0_0.distcp", ".metadata", "seal.json"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(
    tmp_path: Path, file: str, harm: Any
) -> None:
    _, _, (older, newer) = saved_twice(tmp_path)
    harm(newer / file)
    _, step, _ = built()
    with pytest.warns(RuntimeWarning, match=rf"{newer.name}: {file} (has \d+ bytes of|was altered|is )"):
        assert step.resume(str(tmp_path)) == str(older)
    assert step.updates == 1


def test_when_no_checkpoint_is_sound_nothing_is_loaded(tmp_path: Path) -> None:
    _, _, paths = saved_twice(tmp_path)
    for path in paths:
        cut_short(path / "__0_0.distcp")
    model, step, _ = built()
    before = weights_of(model)
    with pytest.warns(RuntimeWarning), pytest.raises(CheckpointError, match=r"no checkpoint in .* is sound"):
        step.resume(str(tmp_path))
    assert same_bits(before, weights_of(model))


def test_no_checkpoint_yet_is_no_error(tmp_path: Path) -> None:
    _, step, _ = built()
    assert step.resume(str(tmp_path / "none")) is None


def test_a_checkpoint_of_another_model_changes_nothing(tmp_path: Path) -> None:
    saved_twice(tmp_path)
    model = small_model(torch.float32)
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1))
    before = weights_of(model)
    with pytest.raises(CheckpointError, match=r"'2.weight' has shape \(3, 8\) here and no such tensor there"):
        step.resume(str(tmp_path))
    assert same_bits(before, weights_of(model))


def test_an_index_that_asks_for_code_is_refused(tmp_path: Path) -> None:
    from gradclinic.train.reader import SafeReader

    (tmp_path / ".metadata").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(CheckpointError, match=r"asks for \w+.system, which no checkpoint needs"):
        SafeReader(tmp_path).read_metadata()


def test_old_checkpoints_are_removed(tmp_path: Path) -> None:
    _, step, paths = saved_twice(tmp_path)
    third = step.save(str(tmp_path), keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [paths[1].name, Path(third).name]


def test_a_batch_without_its_loss_cannot_be_saved() -> None:
    _, step, loader = built()
    for _ in step.over(loader):
        with pytest.raises(TrainStepError, match=r"save after step\(loss\)"):
            step.state_dict()
        break


def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path) -> None:
    model, step, _ = built()
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    with pytest.raises(TrainStepError, match="before saving, 1 weights"):
        step.save(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_state_of_another_kind_of_step_is_refused() -> None:
    _, step, _ = built()
    saved = step.state_dict()
    model = small_model(torch.float32)
    other = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(CheckpointError, match="has 1 schedulers, this TrainStep 0"):
        other.load_state_dict(saved)
    with pytest.raises(CheckpointError, match="not a state of TrainStep"):
        other.load_state_dict({"weights": 1})

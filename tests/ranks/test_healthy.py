"""Distributed training as it should be: nothing is found, nothing is disturbed, no rank is asked anything."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.ranks.processes import PROGRAMS, on_each_rank, run_program

BOTH = pytest.mark.parametrize("name", ["ddp", "fsdp"])


@BOTH
def test_a_healthy_training_raises_nothing(name: str, tmp_path: Path) -> None:
    report = run_program(name, tmp_path)

    assert report["findings"] == []
    assert report["problems"] == []
    assert report["summary"]["ranks"] == 2
    assert {"check": "distributed training", "state": "pass"} in report["judged"]


@BOTH
def test_watching_one_rank_only_changes_nothing(name: str, tmp_path: Path) -> None:
    """A collective of ours on one rank would hang, or mix itself up with one of the program's."""
    for folder, watched in (("bare", ()), ("watched", (0,))):
        (tmp_path / folder).mkdir()
        ended = on_each_rank(tmp_path / folder, _weights, str(PROGRAMS / f"{name}.py"), watched)
        assert [one.code for one in ended] == [0, 0], ended

    for rank in (0, 1):
        bare, seen = ((tmp_path / folder / f"weights-{rank}").read_text() for folder in ("bare", "watched"))
        assert bare == seen


def _weights(program: str, watched: tuple[int, ...]) -> int:
    import torch.distributed as dist

    from gradclinic.runtime import Recording

    spec = importlib.util.spec_from_file_location("program", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if rank in watched:
        with Recording() as recording:
            model = module.train()
        assert recording.problems == ()
        assert recording.steps > 0
        recording.observation()
    else:
        model = module.train()
    local = [getattr(one, "to_local", lambda one=one: one)() for one in model.parameters()]
    Path(f"weights-{rank}").write_text(str([one.tolist() for one in local]))
    dist.barrier()
    dist.destroy_process_group()
    return 0

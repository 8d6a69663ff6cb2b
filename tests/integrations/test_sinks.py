"""What each logger stored is read back with its own reader: the same names, numbers and alerts in all."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator

import pytest
import torch
from torch import nn

import gradclinic as gc

SCALARS = {
    "gradclinic/loss",
    "gradclinic/gradient_norm/total",
    "gradclinic/gradient_norm/0.weight",
    "gradclinic/weight_norm/total",
    "gradclinic/weight_norm/2.bias",
    "gradclinic/update_ratio/typical",
    "gradclinic/rate/0",
    "gradclinic/clip_rate",
}
ALERT = "gradclinic/alert/GC109-clip-after-step"
SPREAD = "gradclinic/histogram/gradient_norm"
LAST = 39


def _train(to: object) -> dict[int, float]:
    """Forty updates, clipped too late; returns the losses."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = {}
    with gc.watch(model, optimizer, to=to) as monitor:
        for step in range(LAST + 1):
            x = torch.randn(16, 4)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            loss.backward()
            optimizer.step()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            losses[step] = loss.item()
    assert monitor.diagnose().problems == ()
    return losses


def test_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        losses = _train(writer)
    kept = EventAccumulator(str(tmp_path), size_guidance={"scalars": 0}).Reload()
    tags = kept.Tags()
    assert set(tags["scalars"]) >= SCALARS - {"gradclinic/clip_rate"}
    stored = {event.step: event.value for event in kept.Scalars("gradclinic/loss")}
    assert stored == pytest.approx(losses)
    assert SPREAD in tags["histograms"]
    [text] = kept.Tensors(f"{ALERT}/text_summary")
    assert text.step == 31
    assert b"gradients are clipped after optimizer.step()" in text.tensor_proto.string_val[0]


def test_wandb_offline(tmp_path, monkeypatch):
    import wandb
    from wandb.proto.wandb_internal_pb2 import Record

    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(project="tests", mode="offline", dir=tmp_path)
    losses = _train(run)
    run.log({"mine": 1.0})
    alert = run.summary[ALERT]
    run.finish()
    wandb.teardown()  # its process has written all that it will
    assert alert.splitlines()[0] == "gradients are clipped after optimizer.step() has used them"

    [file] = tmp_path.rglob("*.wandb")
    records = [Record.FromString(data) for data in _records(file.read_bytes())]
    told = [record.history.item for record in records if record.HasField("history")]
    # The user closes the rows of their own run: the latest numbers of ours are in the one they logged.
    [row] = [{"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in items} for items in told]
    assert row["mine"] == 1.0
    assert row["gradclinic/step"] == LAST
    assert row["gradclinic/loss"] == pytest.approx(losses[LAST])
    assert set(row) >= SCALARS - {"gradclinic/clip_rate"}
    assert row[f"{SPREAD}/_type"] == "histogram"


def _records(file: bytes) -> Iterator[bytes]:
    """The records of an offline run, which lie as in a log of LevelDB behind a header of seven bytes."""
    block, header, whole, last = 32768, 7, 1, 4
    at, parts = header, b""
    while at + header <= len(file):
        if block - at % block < header:
            at += block - at % block
            continue
        length, kind = struct.unpack_from("<HB", file, at + 4)
        if kind == 0:
            return
        parts += file[at + header : at + header + length]
        at += header + length
        if kind in (whole, last):
            yield parts
            parts = b""


def test_mlflow(tmp_path, monkeypatch):
    import mlflow

    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    with mlflow.start_run() as run:
        losses = _train(mlflow)
    client = mlflow.MlflowClient()
    kept = client.get_run(run.info.run_id).data
    assert set(kept.metrics) >= SCALARS - {"gradclinic/clip_rate"}
    stored = {one.step: one.value for one in client.get_metric_history(run.info.run_id, "gradclinic/loss")}
    assert stored == pytest.approx(losses)
    assert kept.tags[ALERT].startswith("gradients are clipped after optimizer.step()")


def test_trackio(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    run = trackio.init("tests", auto_log_gpu=False, auto_log_cpu=False)
    losses = _train(run)
    trackio.finish()
    rows = SQLiteStorage.get_logs("tests", run.name)
    names = {name for row in rows for name in row}
    assert names >= SCALARS - {"gradclinic/clip_rate"}
    assert SPREAD in names
    stored = {row["step"]: row["gradclinic/loss"] for row in rows if "gradclinic/loss" in row}
    assert stored == pytest.approx(losses)
    [alert] = SQLiteStorage.get_alerts("tests", run.name)
    assert alert["title"] == ALERT


def test_run_writes_a_log_of_its_own(gradclinic, sick_script, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    ended = gradclinic("run", "--quiet", "--no-store", "--log", "tensorboard:events", "train.py")
    assert ended.code == 1
    kept = EventAccumulator(str(tmp_path / "events")).Reload()
    assert [event.step for event in kept.Scalars("gradclinic/loss")] == list(range(20))
    assert f"{ALERT}/text_summary" in kept.Tags()["tensors"]

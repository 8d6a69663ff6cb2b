"""Runs made by hand, told to a store as a recording would."""

from __future__ import annotations

import math
from array import array
from pathlib import Path
from typing import Any

from gradclinic.facts import Actor, ActorKind
from gradclinic.facts.exponents import BINS
from gradclinic.facts.memory import Held, MemoryAccount
from gradclinic.facts.training import Activation, ActivationSample, Sample, Step, TensorInfo
from gradclinic.store.writer import Store

HOSTILE = "<img src=x onerror=\"document.title='taken'\">"
BREAKOUT = "</script><script>document.title='taken'</script>"
OPTIMIZER = Actor("optimizer-1", ActorKind.OPTIMIZER, "optimizer", "AdamW")


def begun(folder: Path, *names: str, target: str = "train.py") -> Store:
    """A store that has been told of these layers."""
    store = Store(folder, {"target": target, "arguments": [], "version": "0.1.0"})
    shown = names or ("layers.0.weight", "layers.2.weight", "head.weight")
    store.introduced(OPTIMIZER, tuple(TensorInfo(name, (4, 4), "Linear") for name in shown))
    held = tuple(Held(name, 64, 64, 128) for name in shown)
    store.weighed(MemoryAccount(held))
    return store


def train(store: Store, first: int, count: int, *, tensors: int = 3, every: int = 1) -> None:
    """So many updates more, `every` of them told."""
    for index in range(first, first + count, every):
        loss = 2.0 / (1 + index / 50) + 0.1 * math.sin(index)
        each = array("d", [0.1 * (i + 1) / (1 + index / 500) for i in range(tensors)])
        skipped = index % 97 == 96
        norm = math.nan if skipped else 1.5 + math.sin(index / 7)
        step = Step(index, loss, norm, min(norm, 2.0), (1e-3, 1e-4), 1024.0, skipped, 2.0, each)
        store.updated(OPTIMIZER.id, step)
        if index % (10 * every) == 0:
            weights, moved = array("d", [1.0]) * tensors, array("d", [1e-3]) * tensors
            store.sampled(OPTIMIZER.id, Sample(index, weights, moved, exponents=[1.0] * BINS))
            kinds = ("relu", "tanh")
            told = (ActivationSample(index, 0.1, 0.2, 1.0),)
            store.activated(
                OPTIMIZER.id, tuple(Activation(k, i, None, True, 8, told) for i, k in enumerate(kinds))
            )


def finished(folder: Path, *names: str, updates: int = 200, **document: Any) -> Path:
    """A run that ended, with a diagnosis; returns its file."""
    store = begun(folder, *names)
    train(store, 0, updates, tensors=len(names) or 3)
    store.keep("diagnosis", diagnosis(**document))
    store.keep("tape", {"step": 5, "events": [_event("backward", 0.0), _event("step", 2.5)]})
    store.finish(code=0)
    assert store.path is not None
    return store.path


def diagnosis(
    message: str = "gradients are clipped too late", line: str = "loss.backward()"
) -> dict[str, Any]:
    """A document as `gradclinic run` keeps it, with one finding."""
    return {
        "findings": [
            {
                "code": "GC109",
                "name": "clip-after-step",
                "severity": "error",
                "message": message,
                "location": {"path": "train.py", "line": 12, "column": 0, "function": ""},
                "evidence": [{"label": "order seen", "value": message}],
                "explains": [],
                "fix": {"text": "move the clip up", "edits": []},
            }
        ],
        "judged": [{"check": "clip order", "state": "fail"}],
        "checklist": [{"point": "gradients are cleared once per update", "state": "pass"}],
        "summary": {"error": 1, "warning": 0, "info": 0, "steps": 200},
        "problems": [],
        "measured": {"objectives": [_objective()]},
        "excerpts": [{"lines": [[11, line], [12, "clip()"]], "marked": 12}],
    }


def _objective() -> dict[str, Any]:
    return {
        "backward": "train.py:11",
        "terms": [
            {"name": "recon", "where": "train.py:9", "norm": 0.6, "modules": {"encoder": 0.2, "head": 0.5}},
            {"name": "kl", "where": "train.py:10", "norm": "nan", "modules": {"encoder": "nan"}},
        ],
        "cosines": [{"first": "recon", "second": "kl", "cosine": -0.4}],
    }


def _event(kind: str, ms: float) -> dict[str, Any]:
    return {"kind": kind, "actor": "optimizer", "place": "train.py:3", "ms": ms}

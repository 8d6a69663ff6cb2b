"""What several kinds of test need: the command as a user calls it, and a sick script."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A slow machine fails no test, and a failure seen once is seen again.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

SOURCE = Path(__file__).parent.parent / "src"

CLIPS_TOO_LATE = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def error_line(self) -> str:
        """The one line on stderr; fails if there are more, or a traceback."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return lines[0]


Command = Callable[..., Ended]


@pytest.fixture
def gradclinic(tmp_path: Path) -> Command:
    """Run `gradclinic WORDS…` in a process of its own, in the test's directory."""

    def run(
        *words: str, stdin: bytes | None = None, package: Path = SOURCE, env: dict[str, str] | None = None
    ) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "gradclinic", *words],
            cwd=tmp_path,
            input=stdin or b"",
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(package), "PYTHONIOENCODING": "utf-8", **(env or {})},
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def sick_script(tmp_path: Path) -> Path:
    """`train.py`, twelve lines, which clips after the step."""
    script = tmp_path / "train.py"
    script.write_text(CLIPS_TOO_LATE)
    return script

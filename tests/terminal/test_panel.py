"""What a person sees while a script trains, and that the script's own output is left alone."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
import threading

import pytest

from gradclinic.facts import Actor, ActorKind
from gradclinic.facts.training import Step
from gradclinic.terminal.lines import Lines
from gradclinic.terminal.panel import sparkline, suits
from gradclinic.terminal.pulse import Pulse
from tests.conftest import CLIPS_TOO_LATE, SOURCE

REGION, BACK = "\x1b[1;26r", "\x1b[r"


def _terminal_output(door: int, into: list[bytes]) -> None:
    try:
        while read := os.read(door, 65536):
            into.append(read)
    except OSError:  # how Linux says that nobody writes any more
        pass


def _run_at_a_terminal(folder, *words: str, **variables: str) -> tuple[str, str]:
    """stdout through a pipe, stderr at a terminal of 100 columns and 30 rows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    seen: list[bytes] = []
    reader = threading.Thread(target=_terminal_output, args=(ours, seen))
    reader.start()
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "xterm-256color", **variables}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(
        [sys.executable, "-m", "gradclinic", "run", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment,
        check=False,
    )
    os.close(theirs)
    reader.join()
    os.close(ours)
    return done.stdout.decode(), b"".join(seen).decode()


def test_a_panel_stands_below_the_script_and_is_gone_before_the_report(tmp_path):
    (tmp_path / "train.py").write_text(CLIPS_TOO_LATE + "    print('step', step)\n")
    out, seen = _run_at_a_terminal(tmp_path, "train.py")
    assert out.splitlines() == [f"step {step}" for step in range(20)]
    assert REGION in seen
    drawn, _, after = seen.partition(BACK)
    assert "gradclinic · train.py" in drawn
    assert "loss " in drawn
    assert REGION not in after
    assert "GC109" in after
    assert "`gradclinic report` draws it" in after


@pytest.mark.parametrize(
    ("term", "no_colour", "terminal", "expected"),
    [
        ("xterm", "", True, True),
        ("dumb", "", True, False),
        ("xterm", "1", True, False),
        ("xterm", "", False, False),
    ],
)
def test_only_a_terminal_that_can_show_it_gets_a_panel(monkeypatch, term, no_colour, terminal, expected):
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("NO_COLOR", no_colour)
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: terminal)
    assert suits(out) is expected


def test_a_log_that_asks_for_it_gets_plain_lines(gradclinic, sick_script):
    said = gradclinic("run", "--verbose", "--no-store", "train.py").err
    assert said.startswith("gradclinic: step 1, loss ")
    assert "\x1b" not in said


def test_lines_tell_step_loss_norm_rate_and_alert():
    out = io.StringIO()
    pulse = Pulse(Lines(out).show, 0.0, None)
    pulse.introduced(Actor("optimizer-1", ActorKind.OPTIMIZER, "optimizer"), ())
    pulse.updated("optimizer-1", Step(0, float("nan"), 1.5, 1.0, (0.01,)))
    assert out.getvalue() == "gradclinic: step 1, loss nan, norm 1.5, rate 0.01; the loss is nan (update 0)\n"


def test_a_sparkline_shows_the_whole_run_however_long():
    pulse = Pulse(lambda pulse: None, 0.0, None)
    pulse.introduced(Actor("optimizer-1", ActorKind.OPTIMIZER, "optimizer"), ())
    for index in range(1000):
        pulse.updated("optimizer-1", Step(index, 1000.0 - index, 1.0, 1.0, (0.01,)))
    assert len(pulse.losses) < 64
    drawn = sparkline(pulse.losses, 200)
    assert (drawn[0], drawn[-1]) == ("█", "▁")
    assert list(drawn) == sorted(drawn, reverse=True)

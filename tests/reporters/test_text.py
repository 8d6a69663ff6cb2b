"""The report people read."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gradclinic.findings import Diagnosis, Fix, Summary

WHOLE = """\
train.py:12:5: error GC109 clip-after-step
  gradients are clipped after optimizer.step() has used them
    10 │ loss.backward()
    11 │ optimizer.step()
  > 12 │ nn.utils.clip_grad_norm_(model.parameters(), 1.0)
  order seen  backward:10 step:11 clip:12
  fix         move the clip up, between backward() and step()
    so you see: error GC601 exploding-gradients
      gradient norms reach 5e4
      first step  7

a,b:c.py:3: info GC611 value-clipping
  50% of steps, 3: bent

passed    schedule
not seen  graph shape (model is compiled)
2 errors, 1 note in 1 file, 50 steps, 1 problem; `gradclinic explain GC109` tells more
"""


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_the_whole_report_when_piped(render, diagnosis):
    assert render("text", diagnosis) == WHOLE


def test_a_pipe_gets_no_escape_codes_whatever_the_terminal_is_called(render, diagnosis, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b" not in render("text", diagnosis)


def test_a_terminal_gets_colour_and_no_color_takes_it_away(render, diagnosis, terminal, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;31merror" in render("text", diagnosis, out=terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", render("text", diagnosis, out=type(terminal)()))


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_prose_and_code_fit_the_terminal(render, diagnosis, terminal, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    wordy = replace(diagnosis.findings[0], fix=Fix("move it, " * 30), message="clipped too late " * 12)
    wordy_diagnosis = replace(diagnosis, findings=(wordy,), judged=(), problems=())
    shown = _plain(render("text", wordy_diagnosis, out=terminal))
    *body, closing = shown.splitlines()
    assert max(map(len, body)) <= columns
    assert shown.count("it,") == 30
    assert closing.startswith("1 error in 1 file, 50 steps")


def test_long_paths_are_never_broken(render, diagnosis, terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    path = "experiments/" * 8 + "train.py"
    where = replace(diagnosis.findings[0].location, path=path)
    finding = replace(diagnosis.findings[0], location=where)
    shown = _plain(render("text", replace(diagnosis, findings=(finding,)), out=terminal))
    assert shown.startswith(f"{path}:12:5: error")


def test_markup_in_a_message_is_text(render, diagnosis):
    finding = replace(diagnosis.findings[0], message="[bold]x[/bold] :smile: model[0].weight")
    assert "[bold]x[/bold] :smile: model[0].weight" in render("text", replace(diagnosis, findings=(finding,)))


def test_a_file_that_has_shrunk_since_is_shown_without_code(render, diagnosis):
    where = replace(diagnosis.findings[0].location, line=400)
    shown = render("text", replace(diagnosis, findings=(replace(diagnosis.findings[0], location=where),)))
    assert "│" not in shown
    assert shown.startswith("train.py:400:5: error")


def test_nothing_found_is_one_line(render):
    healthy = Diagnosis("lint", ".", summary=Summary(files=1200))
    assert render("text", healthy) == "nothing found in 1,200 files\n"


def test_quiet_is_a_line_for_each_finding(render, diagnosis):
    first, second, third = render("text", diagnosis, quiet=True).splitlines()
    assert first == f"train.py:12:5: error GC109 clip-after-step: {diagnosis.findings[0].message}"
    assert second.startswith("a,b:c.py:3: info GC611")
    assert third.startswith("error GC601")


def test_a_run_without_a_step_is_not_called_healthy(render):
    assert render("text", Diagnosis("run", "train.py")) == (
        "no optimizer took a step: there was no training to judge\n"
    )

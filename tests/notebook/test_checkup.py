"""`%%checkup` in a real IPython shell: the cell runs as ever, and its fault is named in its own lines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import RichOutput, capture_output

from gradclinic.findings import Diagnosis
from tests.conftest import SOURCE

SETUP = """\
import torch
from torch import nn
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
"""
HEALTHY = """\
%%checkup
for step in range(10):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SICK = HEALTHY + "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """A shell with the extension loaded and a model made in an earlier cell."""
    one = InteractiveShell.instance()
    one.run_cell("%load_ext gradclinic").raise_error()
    one.run_cell(SETUP, store_history=True).raise_error()
    yield one
    InteractiveShell.clear_instance()


def _shown(shell: InteractiveShell, cell: str) -> list[RichOutput]:
    with capture_output() as captured:
        shell.run_cell(cell, store_history=True)
    return list(captured.outputs)


def _html(outputs: list[RichOutput]) -> str:
    return str(outputs[-1].data["text/html"])


def test_the_fault_is_named_at_the_line_the_user_sees(shell):
    number = shell.execution_count
    shown = _shown(shell, SICK)
    html = _html(shown)
    assert "GC109 clip-after-step" in html
    line = SICK.splitlines().index("    nn.utils.clip_grad_norm_(model.parameters(), 1.0)") + 1
    assert f"Cell In[{number}]:{line}" in html
    assert f"&gt; {line} │ nn.utils.clip_grad_norm_" in html
    assert f"Cell In[{number}]:{line}: error GC109" in shown[-1].data["text/plain"]


def test_a_healthy_cell_is_cleared_and_what_it_left_behind_stays(shell):
    html = _html(_shown(shell, HEALTHY))
    assert "nothing found" in html
    assert "10 steps" in html
    assert shell.user_ns["loss"].requires_grad


def test_training_spread_over_cells_is_not_accused_of_what_another_cell_does(shell):
    backward_only = "%%checkup\nfor _ in range(3):\n    model(torch.ones(2, 4)).mean().backward()\n"
    assert "nothing found" in _html(_shown(shell, backward_only))
    built_only = "%%checkup\nlater = torch.optim.lr_scheduler.StepLR(optimizer, 10)\n"
    assert "nothing found" in _html(_shown(shell, built_only))


def test_an_error_of_the_cell_appears_as_ever_and_the_diagnosis_with_it(shell):
    with capture_output() as captured:
        shell.run_cell(SICK + "raise ValueError('own fault')\n", store_history=True)
    assert "ValueError" in captured.stdout
    assert "own fault" in captured.stdout
    assert "GC109" in _html(captured.outputs)


def test_a_comment_in_the_cell_silences(shell):
    silenced = SICK.replace("1.0)\n", "1.0)  # gradclinic: ignore[GC109]\n")
    assert "nothing found" in _html(_shown(shell, silenced))


def test_a_fault_in_a_function_of_an_earlier_cell_is_placed_there(shell):
    earlier = SICK.replace("%%checkup\n", "").replace("for step in range(10):", "def update():")
    number = shell.execution_count
    _shown(shell, earlier)
    html = _html(_shown(shell, "%%checkup\nfor step in range(10):\n    update()\n"))
    assert f"Cell In[{number}]:6" in html
    assert "&gt; 6 │ nn.utils.clip_grad_norm_" in html


def test_another_cell_magic_can_follow(shell):
    html = _html(_shown(shell, SICK.replace("%%checkup\n", "%%checkup\n%%time\n")))
    assert "GC109" in html


def test_an_argument_is_refused(shell):
    with capture_output() as captured:
        shell.run_cell("%%checkup --fast\npass\n")
    assert "%%checkup takes no arguments, and was given '--fast'" in captured.stdout


def test_torch_is_as_it_was_after_the_cell(shell):
    import torch

    before = torch.Tensor.backward
    _shown(shell, SICK)
    assert torch.Tensor.backward is before


def test_importing_gradclinic_does_not_import_ipython():
    code = "import sys, gradclinic; sys.exit('IPython' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_an_empty_diagnosis_shows_itself():
    assert "nothing found" in Diagnosis("run", "train.py")._repr_html_()

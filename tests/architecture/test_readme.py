"""The README shows what the command prints, not what it once printed."""

from __future__ import annotations

import shutil

from gradclinic.gallery import HOME
from tests.conftest import SOURCE

README = SOURCE.parent / "README.md"


def test_the_first_example_is_real_output(gradclinic, tmp_path):
    block = README.read_text(encoding="utf-8").split("```console\n", 1)[1].split("```", 1)[0]
    prompt, *shown = block.splitlines()
    words = prompt.removeprefix("$ gradclinic ").split()
    shutil.copy(HOME / words[-1], tmp_path)
    ended = gradclinic(*words)
    # The losses are the script's own, and their last digits the machine's. What was checked besides
    # grows with every rule, so only the finding and the last line are held to the letter.
    report = [line for line in shown if not line.startswith("epoch ")]
    finding = report[: report.index("")]
    assert ended.err.splitlines()[: len(finding)] == finding
    assert ended.err.splitlines()[-1] == report[-1]
    assert ended.out.startswith("epoch 0: loss ")


def test_it_stays_short_enough_to_be_read():
    assert len(README.read_text(encoding="utf-8").splitlines()) < 150

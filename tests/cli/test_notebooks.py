"""Notebooks: read cell by cell as one program, told by cell and line, fixed without touching the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradclinic.linting.magics import as_python
from tests.conftest import CLIPS_TOO_LATE

SETUP, LOOP = CLIPS_TOO_LATE.split("for step", 1)
LOOP = f"for step{LOOP}".rstrip("\n")


def cell(text: str, kind: str = "code") -> dict[str, object]:
    outputs = {"execution_count": 3, "outputs": [{"output_type": "stream", "text": ["é"]}]}
    return {
        "cell_type": kind,
        "metadata": {},
        **(outputs if kind == "code" else {}),
        "source": text.splitlines(keepends=True),
    }


def notebook(*cells: dict[str, object], language: str = "python") -> str:
    document = {
        "cells": list(cells),
        "metadata": {"language_info": {"name": language}, "weight": 0.1},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


SICK = (
    cell("# Training", "markdown"),
    cell("%matplotlib inline\n!pip install torch \\\n    numpy\n" + SETUP),
    cell("%%bash\nfor f in *; do echo $f; done"),
    cell("%%time\n" + LOOP),
)


@pytest.fixture
def sick_notebook(tmp_path: Path) -> Path:
    path = tmp_path / "train.ipynb"
    path.write_text(notebook(*SICK), encoding="utf-8")
    return path


def test_a_finding_names_cell_and_line_and_shows_it(gradclinic, sick_notebook):
    ended = gradclinic("lint", ".")
    assert ended.code == 1
    assert ended.out.splitlines()[0] == "train.ipynb:cell 4:8:5: error GC109 clip-after-step"
    assert "> 8 │ nn.utils.clip_grad_norm_(model.parameters(), 1.0)" in ended.out
    assert "backward:4:6 step:4:7 clip:4:8" in ended.out


def test_the_document_has_the_cell_and_other_formats_name_it(gradclinic, sick_notebook):
    (found,) = json.loads(gradclinic("lint", "train.ipynb", "--format", "json").out)["findings"]
    assert found["location"] == {"path": "train.ipynb", "line": 8, "column": 4, "function": "", "cell": 4}
    assert {edit["cell"] for edit in found["fix"]["edits"]} == {4}
    (line,) = gradclinic("lint", "train.ipynb", "--format", "github").out.splitlines()
    assert line.startswith("::error title=GC109 clip-after-step,file=train.ipynb::cell 4, line 8: ")


def test_a_fix_edits_the_cell_and_leaves_all_else_as_it_is(gradclinic, sick_notebook):
    assert gradclinic("lint", "--fix").code == 0
    lines = LOOP.split("\n")
    right = "\n".join(["%%time", *lines[:-2], lines[-1], lines[-2]])
    assert sick_notebook.read_text(encoding="utf-8") == notebook(*SICK[:3], cell(right))


def test_a_notebook_that_jupyter_did_not_lay_out_is_not_rewritten(gradclinic, sick_notebook):
    odd = sick_notebook.read_text(encoding="utf-8").replace('"nbformat": 4', '"nbformat":  4')
    sick_notebook.write_text(odd, encoding="utf-8")
    ended = gradclinic("lint", "--fix")
    assert ended.code == 1
    assert ended.err == "gradclinic: fixed 0 of 1 finding\n"
    assert sick_notebook.read_text(encoding="utf-8") == odd


def test_a_comment_silences_its_line_of_the_cell(gradclinic, sick_notebook):
    sick_notebook.write_text(notebook(*SICK[:3], cell(f"{LOOP}  # gradclinic: ignore[GC109]")))
    assert gradclinic("lint").code == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (notebook(cell("x = 1"), cell("x = 1\nx = (")), "train.ipynb:cell 2:2:5: not valid Python: "),
        ("{", "train.ipynb: cannot be read: not a notebook (no valid JSON)"),
        ("[]", "train.ipynb: cannot be read: not a notebook of format 4 (no list of cells)"),
    ],
)
def test_what_cannot_be_read_is_one_line(gradclinic, sick_notebook, text, problem):
    sick_notebook.write_text(text)
    ended = gradclinic("lint")
    assert ended.code == 2
    assert ended.error_line.startswith(f"gradclinic: {problem}")


def test_other_languages_are_not_read(gradclinic, sick_notebook):
    sick_notebook.write_text(notebook(cell("x <- c(1, 2)"), language="R"))
    assert gradclinic("lint").code == 0


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("x = 7 % 3\n% 4", "x = 7 % 3\n% 4"),
        ("for _ in range(3):\n    !ls", "for _ in range(3):\n    pass"),
        ("files = !ls\nn = %timeit -o f()", "files = None\nn = None"),
        ("model?\nmodel.fit??", "pass\npass"),
        ("!a \\\n  b\nx = 1", "pass\n\nx = 1"),
        ("\n%%html\n<b>", "\n\n"),
        ("%%capture\nx = 1", "pass\nx = 1"),
        ("%ls\nok = (1\n != 2)", "pass\nok = (1\n != 2)"),
        ('"""\n%not a magic\n"""', '"""\n%not a magic\n"""'),
    ],
)
def test_magics_become_python_and_no_line_moves(text, python):
    assert as_python(text) == python

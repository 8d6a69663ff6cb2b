"""The words of a file are asked of its code: examples in docstrings and remarks train nothing."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

import pytest

from gradclinic.facts import Source
from gradclinic.static import observe_source
from gradclinic.static.bare import bare_and_unquoted

HERE = Path(__file__).parents[2]
SAID = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
TRAINS = "import torch\nloss.backward()\noptimizer.step()\noptimizer.step()\n"


def bare(text: str) -> str:
    return bare_and_unquoted(text)[0]


def words(text: str) -> list[str]:
    """What Python's own tokenizer takes for code."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kept = [token for token in tokens if token.type not in SAID]
    return [token.string for token in kept if not token.string.lstrip("rbfuRBFU").startswith(('"""', "'''"))]


@pytest.mark.parametrize("folder", ["src/gradclinic", "trials", "tests/static", "benchmarks"])
def test_all_that_runs_is_left_and_nothing_that_is_said(folder: str) -> None:
    for file in sorted((HERE / folder).rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        left = bare(text)
        # The letter before a docstring that is gone stands alone then.
        assert [word for word in words(left) if word not in "rf"] == [w for w in words(text) if w not in "rf"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("x = 1  # loss.backward()\n", "x = 1  \n"),
        ('s = "# no remark"\n', 's = "# no remark"\n'),
        ("s = '\"\"\"'  # '''\nx.step()\n", "s = '\"\"\"'  \nx.step()\n"),
        ('"""It says \\""" and goes on."""\nx.step()\n', "\nx.step()\n"),
        ("# don't\nx.step()  # it's \"\"\"\ny()\n", "\nx.step()  \ny()\n"),
        ("!echo it's\nx.step()\n", "!echo it's\nx.step()\n"),
        ("s = 'one \\\n two'  # three\n", "s = 'one \\\n two'  \n"),
    ],
)
def test_quotes_and_remarks_within_each_other(text: str, left: str) -> None:
    assert bare(text) == left


def test_training_in_an_example_is_not_walked() -> None:
    said = f'"""Use it so:\n\n{TRAINS}"""\nimport torch\n'
    assert observe_source(said, "library.py").cases == ()


def test_training_beside_an_example_is() -> None:
    both = f'"""Use it so:\n\n{TRAINS}"""\n{TRAINS}'
    observation = observe_source(both, "script.py")
    assert observation.source is Source.STATIC
    assert observation.cases


def test_a_file_that_speaks_of_torch_in_a_remark_alone_may_be_handed_a_model() -> None:
    text = (
        "# gradients of a torch model\n"
        "def explain(model, x, optimizer):\n"
        "    for part in x:\n"
        "        loss = model(part).sum()\n"
        "        loss.backward(retain_graph=True)\n"
        "        optimizer.step()\n"
    )
    assert observe_source(text, "explain.py").cases


def test_what_is_within_quotes_is_left_out_of_the_second_text() -> None:
    text = "x = 'loss.backward()'  # no\ny = \"it's\" + 'so'\nz.step()\n"
    assert bare_and_unquoted(text)[1] == "x =   \ny =  + \nz.step()\n"

"""The page about TrainStep shows code that runs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "train-step.md"


def test_the_examples_of_the_page_run_one_after_the_other() -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, PAGE.name, "exec"), names)
    assert len(examples) >= 4
    assert names["step"].epoch == 5  # type: ignore[attr-defined]

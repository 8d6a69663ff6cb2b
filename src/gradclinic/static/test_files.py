"""Files that test something: their loops go a few steps, and in the order that is tested."""

from __future__ import annotations

import os

from gradclinic.static import words

_FOLDERS = ("test", "tests")


def tests(text: str, path: str) -> bool:
    """The name alone does not tell: `test_net.py` may well be the evaluation itself, and `train_and_test.py`
    with arguments of its own is a program."""
    if words.TEST_FILE.search(path) is None or "def test_" not in text:
        return False
    return "ArgumentParser(" not in text or "unittest" in text or "pytest" in text


def tries(text: str, path: str) -> bool:
    """The same of what stands beside tests: it goes a few steps, and may keep what it wants to look at."""
    beside = os.path.basename(os.path.dirname(path)) in _FOLDERS
    return tests(text, path) or (beside and words.TEST_FILE.search(path) is not None)

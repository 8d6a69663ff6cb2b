"""Files that test something: their loops go a few steps, and in the order that is tested."""

from __future__ import annotations

import os
import re

from gradclinic.static import words

_FOLDERS = ("test", "tests")
_TESTS = re.compile(r"\b(?:pytest|unittest|absltest|TestCase)\b|def test(?:_|[A-Z])\w*\(\s*(?:self)?\s*\)")
"""A framework, or a function that it would call: of what it is to test, that is given nothing."""


def is_test(text: str, path: str) -> bool:
    """The name alone does not tell: `test_net.py` may well be the evaluation itself, and `train_and_test.py`
    with arguments of its own is a program."""
    if words.TEST_FILE.search(path) is None or "def test_" not in text:
        return False
    return "ArgumentParser(" not in text or "unittest" in text or "pytest" in text


def is_trial(text: str, path: str) -> bool:
    """Whether it may keep what it wants to look at, and make up what it gives to a loss."""
    if words.TEST_FILE.search(path) is None:
        return False
    return os.path.basename(os.path.dirname(path)) in _FOLDERS or _TESTS.search(text) is not None

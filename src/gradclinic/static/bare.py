"""Sources without what is only said in them: examples in docstrings and remarks train nothing."""

from __future__ import annotations

import re

_SAID = re.compile(
    r"""#[^\n\r]*+"""
    r'''|"""(?:[^"\\]++|\\.|"(?!""))*+"""'''
    r"""|'''(?:[^'\\]++|\\.|'(?!''))*+'''"""
    r"""|("(?:[^"\\\n\r]++|\\.)*+"|'(?:[^'\\\n\r]++|\\.)*+')""",
    re.S,
)
"""What is within quotes on one line is kept: it may name a method, or a class of torch."""


def bare_and_unquoted(text: str) -> tuple[str, str]:
    """The code alone, and the same without what stands within quotes, for questions that words answer; in a
    tenth of the time that its tree takes."""
    parts = _SAID.split(text)
    return "".join(filter(None, parts)), "".join(parts[::2])

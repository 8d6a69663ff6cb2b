"""Whether models of a file may end in what some losses do themselves: asked of its text, for few do."""

from __future__ import annotations

import re

_WORDS = ("softmax", "sigmoid", "Softmax", "Sigmoid")
_LAYER = re.compile(r"^(.*)\b(?:nn\.)?(?:(?:Log)?Softmax|Sigmoid)(?:2d)?\(", re.M)
_KEPT = re.compile(r"\s*self\.(\w+)\s*=\s*$")
_FUNCTIONS = ("softmax", "log_softmax", "sigmoid")
_MADE = re.compile(r"\s*(\w+)\s*=[^=]")
_RETURNED = re.compile(r"^\s*return\b(.*)", re.M)


def may_end(text: str) -> bool:
    """Not where a softmax weighs something, and a sigmoid is a gate: what they give is not returned."""
    if "def forward" not in text or "torch" not in text or not any(word in text for word in _WORDS):
        return False
    called = list(_FUNCTIONS)
    for before in _LAYER.findall(text):
        kept = _KEPT.match(before)
        if kept is None:
            return True  # One of several layers, and maybe the last.
        called.append(kept[1])
    returned = " ".join(_RETURNED.findall(text))
    lines = re.findall(rf"^.*\b(?:{'|'.join(called)})\(.*", text, re.M)
    return any(_is_returned(line, returned) for line in lines if "def " not in line)


def _is_returned(line: str, returned: str) -> bool:
    made = _MADE.match(line)
    return made is None or re.search(rf"\b{made[1]}\b", returned) is not None

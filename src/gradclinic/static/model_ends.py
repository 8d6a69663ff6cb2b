"""Whether models of a file may end in what some losses do themselves: asked of its text, for few do."""

from __future__ import annotations

import re

_WORDS = ("softmax", "sigmoid", "Softmax", "Sigmoid")
_LAYER = re.compile(r"(?:Softmax|Sigmoid)(?:2d)?\(")
_KEPT = re.compile(r"\s*self\.(\w+)\s*=\s*(?:Log)?")
_FUNCTIONS = ("softmax", "log_softmax", "sigmoid")
_MADE = re.compile(r"\s*(\w+)\s*=(?!=)")
_RETURNED = re.compile(r"return\b(?<=\sreturn)([^\n]*)")


def may_end(text: str) -> bool:
    """Not where a softmax weighs something, and a sigmoid is a gate: what they give is not returned."""
    if "def forward" not in text or "torch" not in text or not any(word in text for word in _WORDS):
        return False
    called = list(_FUNCTIONS)
    for layer in _LAYER.finditer(text):
        kept = _KEPT.fullmatch(text, text.rfind("\n", 0, layer.start()) + 1, layer.start())
        if kept is None:
            return True  # One of several layers, and maybe the last.
        called.append(kept[1])
    returned = " ".join(_RETURNED.findall(text))
    calls = re.finditer(rf"\b(?:{'|'.join(called)})\(", text)
    lines = (text[text.rfind("\n", 0, call.start()) + 1 : call.start()] for call in calls)
    return any(_is_returned(line, returned) for line in lines if "def " not in line)


def _is_returned(before: str, returned: str) -> bool:
    """Whether what is called behind `before` on its line, or the name that it gets, is given back."""
    made = _MADE.match(before)
    return made is None or re.search(rf"\b{made[1]}\b", returned) is not None

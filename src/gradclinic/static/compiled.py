"""Sources that Python has compiled already: that they are valid need not be asked again."""

from __future__ import annotations

import os
import sys
from importlib.util import MAGIC_NUMBER

_STAMPED = bytes(4)
"""The flags of a compiled file that is stamped with the time and size of its source, as nearly all are."""


def is_compiled(text: str, path: str) -> bool:
    """Whether `text` stands in the file at `path`, and this Python has compiled it as it stands there."""
    folder, name = os.path.split(path)
    compiled = f"{name.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc"
    try:
        with open(os.path.join(folder, "__pycache__", compiled), "rb") as file:
            header = file.read(16)
        with open(path, "rb") as source:
            version, data = os.fstat(source.fileno()), source.read()
    except OSError:
        return False
    stamp = (int(version.st_mtime) & 0xFFFFFFFF).to_bytes(4, "little")
    size = (version.st_size & 0xFFFFFFFF).to_bytes(4, "little")
    return header == MAGIC_NUMBER + _STAMPED + stamp + size and data == text.encode("utf-8", "surrogatepass")

"""gradclinic's own commands in a process of their own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import gradclinic


def command_line(*words: str) -> list[str]:
    return [sys.executable, "-m", "gradclinic", *words]


def environment() -> dict[str, str]:
    """Ours, with this very package importable from any directory."""
    package = Path(gradclinic.__file__).resolve().parent.parent
    paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}

"""Ways to show a diagnosis. Every module here with a `render` is one, called by its own name."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import TextIO

from gradclinic.findings import Diagnosis
from gradclinic.reporters._page import Page

__all__ = ["Page", "names", "report"]


def names() -> list[str]:
    return sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))


def report(
    name: str, diagnosis: Diagnosis, out: TextIO, *, pages: Mapping[str, Page], quiet: bool = False
) -> None:
    """Write `diagnosis` to `out` in the format `name`. `pages` holds what is known of each code."""
    import_module(f"{__name__}.{name}").render(diagnosis, out, pages=pages, quiet=quiet)

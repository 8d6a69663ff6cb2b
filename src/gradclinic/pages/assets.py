"""What a page is drawn with: our own style and script, and plotly's from the installed package."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gradclinic.errors import UsageError


@cache
def own(name: str) -> str:
    return (files("gradclinic.pages") / "static" / name).read_text(encoding="utf-8")


@cache
def plotly() -> str:
    """The script that plotly's Python package brings; the package itself is not imported."""
    return plotly_file().read_text(encoding="utf-8")


def plotly_file() -> Path:
    spec = find_spec("plotly")
    place = next(iter(spec.submodule_search_locations or ()), None) if spec else None
    script = Path(place or "") / "package_data" / "plotly.min.js"
    if place is None or not script.is_file():
        raise UsageError("figures need plotly; install it with `pip install 'gradclinic[report]'`")
    return script


def embedded(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def script_text(code: str) -> str:
    """A script that cannot end its own element."""
    return code.replace("</script", "<\\/script")

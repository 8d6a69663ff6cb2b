"""What a figure is made of, and how numbers and names go into it."""

from __future__ import annotations

import sys
from array import array
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import inf, nan
from typing import Any

_LONGEST = 44
_DECADES = 100
ABSENT = -1.0
"""As in facts: a tensor without a gradient, or not measured."""


@dataclass(frozen=True)
class Figure:
    id: str
    title: str
    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    note: str = ""
    """A sentence on how to read it."""
    height: int = 320
    wide: bool = False
    """Takes the whole width of the page."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What the page's script needs beside plotly's own data."""

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "note": self.note,
            "height": self.height,
            "wide": self.wide,
            "data": list(self.data),
            "layout": dict(self.layout),
            **self.extra,
        }


@dataclass(frozen=True)
class Missing:
    """A figure that cannot be drawn of this run, and why."""

    title: str
    why: str


def numbers(values: Iterable[float | None]) -> dict[str, str]:
    """Packed, to be unpacked by the page; None and what was not measured become gaps."""
    return {
        "f4": _coded(array("f", (nan if value is None or value == ABSENT else value for value in values)))
    }


def steps(values: Iterable[int]) -> dict[str, str]:
    return {"i4": _coded(array("i", values))}


def _coded(values: array[Any]) -> str:
    if sys.byteorder == "big":
        values.byteswap()
    return b64encode(values.tobytes()).decode("ascii")


def shown(name: str) -> str:
    """A name from the user's program, safe and short enough for a label: plotly reads some markup."""
    return escape(name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}", quote=False)


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    return {"title": {"text": title, "standoff": 12}, **more}


def log_axis(title: str, values: Iterable[float | None], **more: Any) -> dict[str, Any]:
    """For these values: ticks at powers of ten alone where there are several."""
    known = [value for value in values if value is not None and 0 < value < inf]
    wide = bool(known) and max(known) >= _DECADES * min(known)
    return axis(title, type="log", exponentformat="power", **({"dtick": 1} if wide else {}), **more)


STEP = axis("update")

"""A trial is one script that holds two: lines marked [sick] or [well] belong to one twin only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).parents[2] / "trials"
MARK = re.compile(r" +# \[(sick|well)\]$")


@dataclass(frozen=True)
class Trial:
    name: str
    finding: str
    text: str

    @property
    def sick(self) -> str:
        return _only("sick", self.text)

    @property
    def well(self) -> str:
        return _only("well", self.text)


def trials() -> list[Trial]:
    return [_read(path) for path in sorted(HOME.glob("*.py"))]


def _read(path: Path) -> Trial:
    text = path.read_text(encoding="utf-8")
    found = re.search(r"^finding: (GC\d{3})$", text, re.MULTILINE)
    assert found, f"{path.name} does not say its finding"
    return Trial(path.stem, found[1], text)


def _only(twin: str, text: str) -> str:
    kept = []
    for line in text.splitlines():
        mark = MARK.search(line)
        if mark is None or mark[1] == twin:
            kept.append(MARK.sub("", line))
    return "\n".join(kept) + "\n"

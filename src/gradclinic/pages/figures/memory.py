"""What parameters, gradients and the optimizer hold in memory, by module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from gradclinic.pages.figure import Figure, Missing, axis, shown
from gradclinic.store.reader import StoredRun

_MOST = 24
_KINDS = (("values", "parameters"), ("gradient", "gradients"), ("state", "optimizer state"))
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "bytes"))


def draw(run: StoredRun) -> Iterator[Figure | Missing]:
    held = run.documents.get("memory", {}).get("held", [])
    if not held:
        yield Missing("Memory", "the run ended before a second update")
        return
    total = sum(one[kind] for one in held for kind, _ in _KINDS)
    modules = _by_module(held)
    largest = sorted(modules, key=lambda name: -sum(modules[name].values()))[:_MOST]
    names = [name for name in modules if name in set(largest)]
    size, unit = next((size, unit) for size, unit in _UNITS if total >= size or size == 1)
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": word,
            "y": [shown(name) for name in names],
            "x": [round(modules[name][kind] / size, 4) for name in names],
            "marker": {"color": f"@series{number + 1}"},
            "hovertemplate": f"%{{y}}<br>{word}: %{{x:.3g}} {unit}<extra></extra>",
        }
        for number, (kind, word) in enumerate(_KINDS)
    ]
    layout = {
        "barmode": "stack",
        "xaxis": axis(unit),
        "yaxis": axis(autorange="reversed", type="category", automargin=True),
        "bargap": 0.3,
    }
    parts = [f"{sum(one[kind] for one in held) / size:.3g} {unit} of {word}" for kind, word in _KINDS]
    note = f"{total / size:.3g} {unit} in all: {', '.join(parts)}. What is saved for backward comes on top."
    yield Figure("memory", "Memory", data, layout, note, height=max(300, 150 + 20 * len(names)))


def _by_module(held: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Two levels of names, one if that makes too many."""
    for depth in (2, 1):
        modules: defaultdict[str, dict[str, int]] = defaultdict(lambda: {kind: 0 for kind, _ in _KINDS})
        for one in held:
            path = one["name"].split(".")[:-1] or [one["name"]]
            for kind, _ in _KINDS:
                modules[".".join(path[:depth])][kind] += one[kind]
        if len(modules) <= _MOST:
            break
    return dict(modules)

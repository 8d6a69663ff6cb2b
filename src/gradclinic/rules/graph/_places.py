"""Parameters by the code they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gradclinic.facts import Location


def by_place(places: Mapping[str, Location | None]) -> Iterator[tuple[Location | None, list[str]]]:
    """Names by the `forward` that holds them: one fault there is one finding."""
    groups: dict[Location | None, list[str]] = {}
    for name, where in places.items():
        groups.setdefault(where, []).append(name)
    return iter(groups.items())

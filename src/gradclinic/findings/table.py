"""What an experiment measured, in rows."""

from __future__ import annotations

from gradclinic.frozen import frozen


@frozen
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

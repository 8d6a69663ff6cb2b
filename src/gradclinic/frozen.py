"""Frozen records: what `@dataclass(frozen=True, slots=True)` gives, at a third of the cost of defining it.

The standard decorator compiles six methods for every class. There are a hundred such classes, and `lint` is
started for single files: they took a third of its start. Here only `__init__` is compiled, the other methods
are shared. That nothing is assigned to a record is held by the type checker, not at run time; what users and
other programs are handed (events, findings, a diagnosis) is frozen in the standard way.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    made: Any = dataclass(slots=True, repr=False, eq=False)(cls)
    names = [one.name for one in fields(made) if one.compare]
    # The first name is asked for twice, so that a single one gives a tuple too.
    values = attrgetter(*names[:1], *names) if names else _nothing

    def equal(self: T, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: T) -> int:
        return hash(values(self))

    made.__eq__, made.__hash__, made.__repr__ = equal, hashed, _shown
    return made  # type: ignore[no-any-return]


def _nothing(record: object) -> tuple[()]:
    return ()


def _shown(self: Any) -> str:
    told = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({told})"

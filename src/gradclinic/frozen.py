"""Records: what `@dataclass(slots=True)` gives, at a tenth of the cost of defining it.

The standard decorator compiles up to six methods for every class. There are more than a hundred such classes,
and `lint` is started for single files: they took a third of its start. Here `__init__` is compiled when the
first record is made, which for most classes of a run is never, and the other methods are shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
_EMPTY: dict[object, str] = {dict: "{}", list: "[]"}
"""Literals are made faster than what a factory is called for."""


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A class with slots whose objects may change; each equals itself only."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass asks for a signature to write one
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)

    def first(self: T, *args: Any, **kwargs: Any) -> None:
        made.__init__ = _initialiser(made)
        made.__init__(self, *args, **kwargs)

    made.__init__, made.__repr__ = first, _shown
    return made  # type: ignore[no-any-return]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A record of values, equal to any other with the same ones.

    That nothing is assigned to it is held by the type checker, not at run time; what users and other programs
    are handed (events, findings, a diagnosis) is frozen in the standard way.
    """
    made: Any = record(cls)
    names = [one.name for one in fields(made) if one.compare]
    # The first name is asked for twice, so that a single one gives a tuple too.
    values = attrgetter(*names[:1], *names) if names else _nothing

    def equal(self: T, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: T) -> int:
        return hash(values(self))

    made.__eq__, made.__hash__ = equal, hashed
    return made  # type: ignore[no-any-return]


def _initialiser(cls: type) -> Callable[..., None]:
    given: dict[str, Any] = {"MISSING": MISSING}
    parameters, body = ["self"], []
    for one in fields(cls):
        name, value = one.name, one.name
        if one.default_factory is not MISSING:
            given[f"make_{name}"] = one.default_factory
            value = f"{_EMPTY.get(one.default_factory, f'make_{name}()')} if {name} is MISSING else {name}"
            parameters.append(f"{name}=MISSING")
        elif one.default is not MISSING:
            given[f"default_{name}"] = one.default
            parameters.append(f"{name}=default_{name}")
        else:
            parameters.append(name)
        body.append(f" self.{name} = {value}\n")
    exec(f"def __init__({', '.join(parameters)}):\n{''.join(body) or ' pass'}", given)
    made: Callable[..., None] = given["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _nothing(record: object) -> tuple[()]:
    return ()


def _shown(self: Any) -> str:
    told = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({told})"

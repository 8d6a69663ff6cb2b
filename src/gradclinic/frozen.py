"""Records: what we use of `@dataclass(slots=True)`, at a fiftieth of the cost of defining it.

The standard decorator looks at every field and compiles up to six methods of every class. There are more than
a hundred such classes, and `lint` is started for single files: they took a third of its start. Here all of it
is put off until the first record is made or compared, which for most classes of a run is never.
"""

from __future__ import annotations

from _thread import RLock  # as `threading` has it, which costs more to load than all that is here
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cached_property
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")
_ONE_AT_A_TIME = RLock()
_EMPTY: dict[object, str] = {dict: "{}", list: "[]"}
"""Literals are made faster than what a factory is called for."""


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A class with slots whose objects may change; each equals itself only."""
    return _made(cls, " self.{name} = {value}\n")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A record of values, equal to any other with the same ones.

    That nothing is assigned to it is held by the type checker, not at run time; what users and other programs
    are handed (events, findings, a diagnosis) is `sealed`.
    """
    return _with_equality(record(cls))


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def sealed(cls: type[T]) -> type[T]:
    """A record of values to which nothing can be assigned, by nobody."""
    made: Any = _made(cls, " assign(self, '{name}', {value})\n")
    made.__setattr__ = made.__delattr__ = _refused
    made.__getstate__, made.__setstate__ = _state, _restored
    return _with_equality(made)


def _made(cls: type[T], assignment: str) -> type[T]:
    """The class with slots for its fields, and with an `__init__` that is compiled when first called."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass asks for a signature to write one
    members = dict(vars(cls))
    names = [name for name, kind in members.get("__annotations__", {}).items() if "ClassVar" not in str(kind)]
    room = ("__dict__",) if any(type(member) is cached_property for member in members.values()) else ()
    for name in (*names, "__dict__", "__weakref__"):
        members.pop(name, None)
    made: Any = type(cls.__name__, cls.__bases__, {**members, "__slots__": (*names, *room)})
    made.__qualname__ = cls.__qualname__

    def first(self: T, *args: Any, **kwargs: Any) -> None:
        made.__init__ = _initialiser(made, assignment)
        made.__init__(self, *args, **kwargs)

    made.__init__, made.__repr__, made.__dataclass_fields__ = first, _shown, _Fields(cls)
    return made  # type: ignore[no-any-return]


class _Fields:
    """`__dataclass_fields__`, filled in by the standard library when someone asks."""

    def __init__(self, plain: type) -> None:
        self.plain = plain

    def __get__(self, instance: object, owner: Any) -> dict[str, Field[Any]]:
        with _ONE_AT_A_TIME:  # `dataclass` takes the defaults off the class it is given
            for made in owner.__mro__:
                if vars(made).get("__dataclass_fields__") is self:
                    plain: Any = dataclass(init=False, repr=False, eq=False)(self.plain)
                    made.__dataclass_fields__ = plain.__dataclass_fields__
                    made.__dataclass_params__ = plain.__dataclass_params__
            return owner.__dataclass_fields__  # type: ignore[no-any-return]


def _initialiser(cls: type, assignment: str) -> Callable[..., None]:
    given: dict[str, Any] = {"MISSING": MISSING, "assign": object.__setattr__}
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
        body.append(assignment.format(name=name, value=value))
    body.append(" self.__post_init__()\n" if hasattr(cls, "__post_init__") else " pass\n")
    exec(f"def __init__({', '.join(parameters)}):\n{''.join(body)}", given)
    made: Callable[..., None] = given["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _with_equality(cls: type[T]) -> type[T]:
    made: Any = cls

    def equal_at_first(self: T, other: object) -> bool:
        _compare_values(made)
        return self == other

    def hash_at_first(self: T) -> int:
        _compare_values(made)
        return hash(self)

    made.__eq__, made.__hash__ = equal_at_first, hash_at_first
    return cls


def _compare_values(made: Any) -> None:
    names = [one.name for one in fields(made) if one.compare]
    # The first name is asked for twice, so that a single one gives a tuple too.
    values = attrgetter(*names[:1], *names) if names else _nothing

    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: object) -> int:
        return hash(values(self))

    made.__eq__, made.__hash__ = equal, hashed


def _nothing(record: object) -> tuple[()]:
    return ()


def _shown(self: Any) -> str:
    told = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({told})"


def _refused(self: object, name: str, value: object = None) -> NoReturn:
    raise FrozenInstanceError(f"{name} of {type(self).__qualname__} cannot be changed")


def _state(self: Any) -> list[object]:
    return [getattr(self, one.name) for one in fields(self)]


def _restored(self: Any, state: list[object]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)

"""Records behave as the standard library's frozen dataclasses do, in all that the project relies on."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, fields, replace

import pytest

from gradclinic.frozen import frozen, record


@frozen
class Place:
    """Where."""

    line: int
    seen: float = field(default=0.0, compare=False)
    names: tuple[str, ...] = ()


@frozen
class Single:
    """One field."""

    line: int


@frozen
class Empty:
    """No field."""


def test_equal_values_are_equal_and_one_key():
    assert Place(1, 2.0) == Place(1, 3.0)
    assert Place(1) != Place(2)
    assert Single(1) != Place(1)
    assert Single((1,)) != Single(1)  # type: ignore[arg-type]
    assert {Place(1, 2.0), Place(1, 3.0), Single(1), Single(1), Empty(), Empty()} == {
        Place(1),
        Single(1),
        Empty(),
    }


@pytest.mark.parametrize("record", [Place(1, 2.0, ("a",)), Single(3), Empty()])
def test_it_travels_between_processes_and_is_shown_as_a_dataclass_is(record: object):
    standard = dataclass(frozen=True)(
        type(type(record).__name__, (), {"__annotations__": type(record).__annotations__})
    )
    values = [getattr(record, one.name) for one in fields(record)]  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(record)) == record
    assert repr(record) == repr(standard(*values)).replace("standard.<locals>.", "")


def test_a_changed_copy_leaves_the_record_as_it_was():
    first = Place(1, names=("a",))
    assert replace(first, line=2) == Place(2, names=("a",))
    assert first.line == 1


def test_a_record_holds_its_fields_and_nothing_else():
    with pytest.raises(AttributeError):
        Single(1).column = 2  # type: ignore[attr-defined]


@record
class Bag:
    name: str
    items: list[int] = field(default_factory=list)
    labels: set[str] = field(default_factory=lambda: {"new"})


def test_a_record_equals_itself_only_and_shares_no_default():
    first, second = Bag("a"), Bag(name="a", items=[1])
    first.items.append(3)
    first.labels.add("old")
    assert (first.items, second.items, Bag("b").items) == ([3], [1], [])
    assert second.labels == {"new"}
    assert first != Bag("a", [3], {"new", "old"})


def test_a_record_without_its_fields_is_refused_as_any_call_is():
    with pytest.raises(TypeError, match=r"Bag.__init__\(\) missing 1 required positional argument: 'name'"):
        Bag()  # type: ignore[call-arg]

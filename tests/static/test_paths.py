"""Paths that are plain without being walked are left out, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradclinic.static import paths
from gradclinic.static.choices import Choices, Question
from gradclinic.static.paths import explore

NAMES = ("a", "b", "c", "(x Eq 1)", "(x Eq 2)")
PARTS = st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), min_size=1, max_size=3)
PROGRAMS = st.lists(st.tuples(PARTS, st.booleans()), min_size=1, max_size=4)
Program = list[tuple[list[tuple[str, bool]], bool]]


def run(program: Program, choices: Choices) -> tuple[bool, ...]:
    """What each `if` of a program came to; one that holds skips the `if` after it."""
    results: list[bool] = []
    for parts, either in program:
        if results and results[-1]:
            results.append(False)
        elif len(parts) == 1:
            results.append(choices.decide(parts[0][0]) is parts[0][1])
        else:
            results.append(choices.decide_all(Question(tuple(parts), either)))
    return tuple(results)


def outcomes(program: Program) -> list[tuple[bool, ...]]:
    return explore(lambda choices: run(program, choices), lambda waiting: True, lambda outcome: outcome)


@given(PROGRAMS)
def test_what_is_not_walked_would_have_shown_nothing_new(program: Program):
    shown = outcomes(program)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "foreseen", lambda *asked: None)
        every = outcomes(program)
    assert set(shown) == set(every)
    assert len(shown) <= len(every)


def test_which_of_two_conditions_fails_is_not_asked_unless_it_matters_elsewhere():
    both = ([("a", True), ("b", True)], False)
    assert outcomes([both]) == [(True,), (False,)]
    elsewhere = ([("b", True)], False)
    assert set(outcomes([both, elsewhere])) == {(True, False), (False, True), (False, False)}


def test_either_of_two_conditions_is_enough_and_both_must_fail():
    assert outcomes([([("a", True), ("b", True)], True)]) == [(True,), (False,)]


def test_some_of_the_paths_show_nothing_where_another_may_disprove_it():
    program = [([("a", True)], False), ([("b", True)], False)]
    left = iter([True, True, False])

    def afford(waiting: int) -> bool:
        return next(left)

    assert explore(lambda choices: run(program, choices), afford, lambda outcome: outcome) == []


def test_a_condition_that_another_one_hides_is_seen_both_ways():
    """`if not frozen: ...; if limit is not None: if not frozen: clip()`: by itself neither shows it."""

    def clips(choices: Choices) -> tuple[str, ...]:
        begun = "frozen" if choices.decide("frozen") else "trained"
        within = not choices.decide("no limit") and not choices.decide("frozen")
        return (begun, "clipped") if within else (begun,)

    shown = explore(clips, lambda waiting: True, lambda outcome: outcome)
    assert shown == [("frozen",), ("trained",), ("frozen",), ("trained", "clipped")]


def test_what_stays_hidden_costs_no_path():
    def runs(choices: Choices) -> str:
        choices.decide("loud")
        return "on" if choices.decide("fast") else "off"

    assert explore(runs, lambda waiting: True, lambda outcome: outcome) == ["on", "on", "off"]


def test_many_conditions_that_hide_the_same_one_do_not_crowd_each_other_out():
    def acts(choices: Choices) -> tuple[str, ...]:
        choices.decide("quiet")
        asked = [name for name in map(str, range(40)) if not choices.decide(name)]
        return tuple(name for name in asked if not choices.decide("quiet"))

    assert explore(acts, lambda waiting: True, lambda outcome: outcome)

"""The answers that make one path, and what they tell of a path that differs in one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gradclinic.frozen import frozen, record
from gradclinic.static import words

_EQUALITY = words.Pattern(r"""\((.*) Eq ['"\d][^()]*\)$""")


@frozen
class Question:
    """`a and not b`, or `a or b` where `either`: what is asked at once, each part until the rest is idle."""

    parts: tuple[tuple[str, bool], ...]
    """Conditions, and what each must be for its part to hold."""
    either: bool

    def asked(self, answers: Mapping[str, bool]) -> list[str]:
        """The conditions that are asked before the answer is plain; those without an answer hold."""
        reached: list[str] = []
        for condition, wanted in self.parts:
            reached.append(condition)
            if (answers.get(condition, True) is wanted) is self.either:
                break
        return reached

    def holds(self, answers: Mapping[str, bool]) -> bool:
        parts = (answers.get(condition, True) is wanted for condition, wanted in self.parts)
        return any(parts) if self.either else all(parts)


@record
class Choices:
    """The answers of one path: those forced on it, and True for all it meets beyond them."""

    forced: dict[str, bool]
    asked: dict[str, bool] = field(default_factory=dict)
    questions: dict[str, Question | None] = field(default_factory=dict)
    """The one question a condition is part of; None for one that is asked by itself or in several."""
    times: dict[str, int] = field(default_factory=dict)
    """How often each was asked."""

    def decide(self, condition: str) -> bool:
        self.questions[condition] = None
        return self._answer(condition)

    def decide_all(self, question: Question) -> bool:
        """No further than Python goes: each part is asked where the ones before it let it matter."""
        for condition, wanted in question.parts:
            if self.questions.setdefault(condition, question) != question:
                self.questions[condition] = None
            if (self._answer(condition) is wanted) is question.either:
                return question.either
        return not question.either

    def _answer(self, condition: str) -> bool:
        self.times[condition] = self.times.get(condition, 0) + 1
        known = self.asked.get(condition)
        if known is None:
            known = not self._excluded(condition) and self.forced.get(condition, True)
            self.asked[condition] = known
        return known

    def _excluded(self, condition: str) -> bool:
        """What equals one constant on this path equals no other."""
        equality = _EQUALITY.match(condition)
        return equality is not None and any(
            taken and (other := _EQUALITY.match(asked)) is not None and other[1] == equality[1]
            for asked, taken in self.asked.items()
        )


@frozen
class Path:
    choices: Choices
    shape: object
    """All that tells its outcome from that of another path."""


def before(choices: Choices, condition: str) -> dict[str, bool]:
    """The answers that led to `condition` being asked."""
    answers: dict[str, bool] = {}
    for asked, answer in choices.asked.items():
        if asked == condition:
            break
        answers[asked] = answer
    return answers


def uncovered(origin: Path, flipped: Path, condition: str) -> list[str]:
    """What is asked in more places once `condition` is flipped: its other answer may show what is hidden."""
    more = flipped.choices.times
    return [
        other
        for other, often in origin.choices.times.items()
        if other != condition and origin.choices.asked[other] and more.get(other, 0) > often
    ]


def foreseen(origin: Path, flipped: str, flips: Mapping[tuple[Choices, str], Path]) -> Path | None:
    """The path that `origin` becomes with one answer flipped, where that need not be walked to be known.

    In `if a and b`, what happens does not depend on which of the two is false, unless one of them is asked
    elsewhere too.
    """
    choices = origin.choices
    question = choices.questions[flipped]
    if question is None:
        return None
    answers = {**choices.asked, flipped: False}
    if question.holds(answers) == question.holds(choices.asked):
        return (
            _answered(question, origin, flipped, answers)
            if _apart(question, origin, origin, flipped)
            else None
        )
    for condition, _ in question.parts:
        if condition == flipped:
            break
        like = flips.get((choices, condition))
        if like is not None and question.holds(like.choices.asked) == question.holds(answers):
            return (
                _answered(question, like, condition, answers)
                if _apart(question, origin, like, condition)
                else None
            )
    return None


def _apart(question: Question, origin: Path, like: Path, first: str) -> bool:
    """Whether nothing else on both paths depends on the question's parts from `first` on."""
    parts = [condition for condition, _ in question.parts]
    rest = parts[parts.index(first) :]
    return origin.choices.forced.keys() <= before(origin.choices, first).keys() and all(
        path.choices.questions.get(condition, question) == question
        and not _compared(condition, (*parts, *path.choices.asked))
        for condition in rest
        for path in (origin, like)
    )


def _compared(condition: str, others: tuple[str, ...]) -> bool:
    """Whether what is compared to a constant here is compared to another one there: not both can hold."""
    equality = _EQUALITY.match(condition)
    return equality is not None and any(
        one != condition and (other := _EQUALITY.match(one)) is not None and other[1] == equality[1]
        for one in others
    )


def _answered(question: Question, like: Path, first: str, answers: Mapping[str, bool]) -> Path:
    """The path `like`, had the question's parts from `first` on been answered so."""
    led = before(like.choices, first)
    asked = {**led, **{c: answers.get(c, True) for c in question.asked(answers) if c not in led}}
    parts = {condition for condition, _ in question.parts}
    asked.update({c: a for c, a in like.choices.asked.items() if c not in asked and c not in parts})
    questions = {**like.choices.questions, **dict.fromkeys(parts & asked.keys(), question)}
    return Path(Choices(led, asked, questions), like.shape)

"""What was looked at and how that ended: the topics of a report and its checklist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain

from gradclinic.checklist import POINTS
from gradclinic.facts import Observation, Source, Tape, features
from gradclinic.findings import Check, Finding, Point, State
from gradclinic.frozen import frozen
from gradclinic.rules import Rule, rules_for

STRONGEST_FIRST = (State.FAIL, State.PASS, State.NOT_SEEN)


@frozen
class Judged:
    topics: tuple[Check, ...]
    checklist: tuple[Point, ...]


def judged(observations: Iterable[Observation], findings: Iterable[Finding]) -> Judged:
    """Each topic and each point of the checklist: passed, failed, or not seen and why."""
    observations, failed = tuple(observations), {finding.code for finding in findings}
    checks: dict[str, Check] = {}
    for rule, seen in _views(observations):
        checks[rule.code] = Check(rule.topic, State.FAIL) if rule.code in failed else _check(rule, seen)
    by_topic: dict[str, list[Check]] = {}
    for check in checks.values():
        by_topic.setdefault(check.check, []).append(check)
    return Judged(
        tuple(_strongest(group) for group in by_topic.values()),
        tuple(Point(point, _state_of(codes, checks)) for point, codes in POINTS),
    )


@frozen
class _View:
    """What one rule could read of all that was observed."""

    facts: tuple[object, ...]
    features: tuple[frozenset[str], ...]
    gaps: Mapping[str, str]


def _views(observations: tuple[Observation, ...]) -> list[tuple[Rule, _View]]:
    gaps = {topic: why for observation in observations for topic, why in observation.gaps.items()}
    told: dict[type, list[tuple[Source, object, frozenset[str]]]] = {}
    for observation in observations:
        for fact in chain.from_iterable(observation.cases):
            has = features(fact) if isinstance(fact, Tape) else frozenset()
            told.setdefault(type(fact), []).append((observation.source, fact, has))
    views: list[tuple[Rule, _View]] = []
    for rule in rules_for(*{observation.source: None for observation in observations}):
        reads = [t for kind in rule.checks for t in told.get(kind, ()) if t[0] in rule.sources]
        views.append((rule, _View(tuple(t[1] for t in reads), tuple(t[2] for t in reads), gaps)))
    return views


def _check(rule: Rule, seen: _View) -> Check:
    if rule.topic in seen.gaps:
        return Check(rule.topic, State.NOT_SEEN, seen.gaps[rule.topic])
    if not seen.facts:
        return _unseen(rule)
    if any(rule.needs <= has for has in seen.features) or not rule.needs:
        return Check(rule.topic, State.PASS)
    missing = rule.needs - frozenset().union(*seen.features)
    wanted = " and no ".join(sorted(missing)) or f"loop with {' and '.join(sorted(rule.needs))}"
    return Check(rule.topic, State.NOT_SEEN, f"no {wanted} was seen")


@cache
def _unseen(rule: Rule) -> Check:
    wanted = next((getattr(fact, "what", "") for fact in rule.checks), "") or "training loop"
    return Check(rule.topic, State.NOT_SEEN, f"no {wanted} was seen")


def _strongest(checks: list[Check]) -> Check:
    return min(checks, key=lambda check: STRONGEST_FIRST.index(check.state))


def _state_of(codes: Iterable[str], checks: Mapping[str, Check]) -> State:
    known = [checks[code] for code in codes if code in checks]
    return _strongest(known).state if known else State.NOT_SEEN

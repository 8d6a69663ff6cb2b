"""Observations meet rules: the one place where evidence becomes a diagnosis."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from gradclinic.checklist import POINTS
from gradclinic.facts import Observation, Source, Tape
from gradclinic.findings import Check, Finding, Point, State
from gradclinic.findings.diagnosis import Relations, rank
from gradclinic.rules import Rule, all_rules


def judge(observations: Iterable[Observation], codes: Collection[str] | None = None) -> tuple[Finding, ...]:
    """Every finding of the rules in `codes` (all by default), ranked."""
    rules = [rule for rule in all_rules() if codes is None or rule.code in codes]
    found = [
        replace(finding, sources=(observation.source,))
        for observation in observations
        for case in observation.cases
        for rule in rules
        if observation.source in rule.sources
        for finding in _on_every_path(rule, case)
    ]
    return rank(found, relations())


def relations() -> Relations:
    rules = all_rules()
    return Relations(
        explains={rule.code: rule.explains for rule in rules if rule.explains},
        subsumes={rule.code: rule.subsumes for rule in rules if rule.subsumes},
    )


def _on_every_path(rule: Rule, case: tuple[object, ...]) -> list[Finding]:
    """A finding counts if it holds on every path that passes its place.

    A clip under `if args.clip:` is judged by the paths that take the branch; a zero_grad found on
    one path only clears the step of the charge on that path, and so of the charge altogether.
    """
    check = rule.checks.get(type(case[0])) if case else None
    if check is None:
        return []
    per_path = [list(check(fact)) for fact in case]
    if len(case) == 1:
        return per_path[0]
    kept: dict[tuple[object, ...], Finding] = {}
    for findings in per_path:
        for finding in findings:
            key = _key(finding)
            if key not in kept and all(
                any(_key(other) == key for other in others) or not _passes(fact, finding)
                for fact, others in zip(case, per_path, strict=True)
            ):
                kept[key] = finding
    return list(kept.values())


def _key(finding: Finding) -> tuple[object, ...]:
    return (finding.location, finding.subject)


def _passes(fact: object, finding: Finding) -> bool:
    if not isinstance(fact, Tape) or finding.location is None:
        return True
    places = {event.where for event in fact.events}
    return finding.location in places and places.issuperset(finding.places)


def topics(observations: Iterable[Observation], findings: Iterable[Finding]) -> tuple[Check, ...]:
    """What was looked at: each topic passed, failed, or was not seen and why."""
    observed = list(observations)
    failed = {finding.code for finding in findings}
    sources = {observation.source for observation in observed}
    gaps = {topic: why for observation in observed for topic, why in observation.gaps.items()}
    states: dict[str, Check] = {}
    for rule in all_rules():
        if not sources & set(rule.sources):
            continue
        state, why = _state(rule, observed, failed, gaps)
        known = states.get(rule.topic)
        if known is None or _STRONGER.index(state) < _STRONGER.index(known.state):
            states[rule.topic] = Check(rule.topic, state, why)
    return tuple(states.values())


_STRONGER = (State.FAIL, State.PASS, State.NOT_SEEN)


def _state(
    rule: Rule, observed: list[Observation], failed: set[str], gaps: dict[str, str]
) -> tuple[State, str]:
    if rule.code in failed:
        return State.FAIL, ""
    if rule.topic in gaps:
        return State.NOT_SEEN, gaps[rule.topic]
    facts = [
        fact
        for observation in observed
        if observation.source in rule.sources
        for case in observation.cases
        for fact in case
        if type(fact) in rule.checks
    ]
    if not facts:
        return State.NOT_SEEN, "no training loop was seen"
    if rule.needs and not any(isinstance(f, Tape) and rule.needs <= f.kinds for f in facts):
        seen = frozenset().union(*(f.kinds for f in facts if isinstance(f, Tape)))
        together = f"loop with {' and '.join(sorted(rule.needs))}"
        missing = " and no ".join(sorted(rule.needs - seen)) or together
        return State.NOT_SEEN, f"no {missing} was seen"
    return State.PASS, ""


def checklist(observations: Iterable[Observation], findings: Iterable[Finding]) -> tuple[Point, ...]:
    """The points of a reliable loop, by the rules that guard each."""
    observed = list(observations)
    failed = {finding.code for finding in findings}
    gaps = {topic: why for observation in observed for topic, why in observation.gaps.items()}
    rules = {rule.code: rule for rule in all_rules()}
    sources = {observation.source for observation in observed}
    points = []
    for point, codes in POINTS:
        states = {
            _state(rules[code], observed, failed, gaps)[0]
            for code in codes
            if code in rules and sources & set(rules[code].sources)
        }
        state = next((state for state in _STRONGER if state in states), State.NOT_SEEN)
        points.append(Point(point, state))
    return tuple(points)


__all__ = ["Source", "checklist", "judge", "relations", "topics"]

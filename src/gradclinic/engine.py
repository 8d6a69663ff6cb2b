"""Observations meet rules: the one place where evidence becomes findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from gradclinic.errors import debugging, fault
from gradclinic.facts import ActorKind, EventKind, Location, Observation, Tape
from gradclinic.findings import Finding
from gradclinic.findings.diagnosis import Relations, rank
from gradclinic.rules import Rule, rules_for

_SWITCHED = ("loss scaling", "mixed precision", "schedule and skipped updates")
"""Topics of what a program has a switch for."""


def judge(
    observations: Iterable[Observation],
    codes: Collection[str] | None = None,
    faults: list[str] | None = None,
) -> tuple[Finding, ...]:
    """Every finding of the rules in `codes` (all by default), ranked.

    A rule that fails says so in `faults`, and the others are heard; without a list its error is raised.
    """
    observations = tuple(observations)
    if not any(observation.cases for observation in observations):
        return ()
    rules = rules_for(*{observation.source: None for observation in observations})
    found = [
        replace(finding, sources=(observation.source,), ranks=_ranks(observation, finding))
        for observation in observations
        for case in observation.cases
        for rule in rules
        if case and type(case[0]) in rule.checks
        if observation.source in rule.sources and (codes is None or rule.code in codes)
        for finding in _found(rule, case, faults)
    ]
    return rank(found, _relations(rules)) if found else ()


def _ranks(observation: Observation, finding: Finding) -> tuple[int, ...]:
    return finding.ranks if observation.rank is None else (observation.rank,)


def _relations(rules: tuple[Rule, ...]) -> Relations:
    return Relations(
        explains={rule.code: rule.explains for rule in rules if rule.explains},
        subsumes={rule.code: rule.subsumes for rule in rules if rule.subsumes},
    )


def _found(rule: Rule, case: tuple[object, ...], faults: list[str] | None) -> list[Finding]:
    try:
        return _on_every_path(rule, case)
    except Exception as error:
        if faults is None or debugging():
            raise
        faults.append(f"{rule.code} could not be judged: {fault(error)}")
        return []


def _on_every_path(rule: Rule, case: tuple[object, ...]) -> list[Finding]:
    """A finding counts if it holds on every path that passes its place.

    A clip under `if args.clip:` is judged by the paths that take the branch; a zero_grad found on
    one path only clears the step of the charge on that path, and so of the charge altogether. A path that
    goes through something unknown before the training begins is another program, and has no say in it. Nor
    has one on which a scaler or a cast is switched off, in what is wrong with those.
    """
    check = rule.checks[type(case[0])]
    per_path = [list(check(fact)) for fact in case]
    if len(case) == 1:
        return per_path[0]
    switched = rule.topic in _SWITCHED
    kept: dict[tuple[object, ...], Finding] = {}
    for path, findings in zip(case, per_path, strict=True):
        for finding in findings:
            key = _key(finding)
            if key not in kept and all(
                any(_key(other) == key for other in others)
                or not _passes(fact, finding)
                or not _unknown_before(fact) <= _unknown_before(path)
                or (switched and not _switched_off(fact) <= _switched_off(path))
                for fact, others in zip(case, per_path, strict=True)
            ):
                kept[key] = finding
    return list(kept.values())


def _unknown_before(fact: object) -> frozenset[Location]:
    """Calls that were not followed, and that happen once, before the first batch."""
    if not isinstance(fact, Tape) or EventKind.OPAQUE not in fact.kinds:
        return frozenset()
    begins = next((event.index for event in fact.of_kind(EventKind.BATCH)), len(fact.events))
    unknown = list(fact.of_kind(EventKind.OPAQUE))
    within = {event.where for event in unknown if event.index > begins}
    return frozenset(event.where for event in unknown if event.index < begins) - within


def _switched_off(fact: object) -> frozenset[str]:
    """Scalers that do nothing on this path, and blocks that cast nothing."""
    if not isinstance(fact, Tape):
        return frozenset()
    casts = {"autocast" for event in fact.of_kind(EventKind.BACKWARD) if event.attrs.get("autocast") is False}
    scalers = [actor for actor in fact.actors.values() if actor.kind is ActorKind.SCALER]
    return frozenset(casts.union(actor.id for actor in scalers if actor.attrs.get("enabled") is False))


def _key(finding: Finding) -> tuple[object, ...]:
    """Where it is and whom it concerns: by name, for another path may build its own elsewhere."""
    return (finding.location, finding.subject.partition("@")[0] if finding.subject else None)


def _passes(fact: object, finding: Finding) -> bool:
    if not isinstance(fact, Tape) or finding.location is None:
        return True
    if _is_another_schedule(fact, finding):
        return False
    # Where a call was not followed, the object that it is made on is another one than on this path.
    places = {event.where for event in fact.events if event.kind is not EventKind.OPAQUE}
    return finding.location in places and places.issuperset(finding.places)


def _is_another_schedule(tape: Tape, finding: Finding) -> bool:
    """Whether this path has built another one in the place of that which the finding is about."""
    subject = finding.subject or ""
    return subject.startswith(ActorKind.SCHEDULE) and "@" in subject and subject not in tape.actors

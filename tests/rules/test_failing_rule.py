"""A rule that trips over what it was shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gradclinic import engine
from gradclinic.facts import Source, Tape
from gradclinic.findings import Finding, Severity
from gradclinic.rules import Rule, find_rule, rules_for
from gradclinic.static import observe_source


def _failing() -> Rule:
    rule = Rule("GC999", "fails", Severity.ERROR, since="0.1.0", sources=(Source.STATIC,), topic="nothing")

    def check(tape: Tape) -> Iterator[Finding]:
        raise ZeroDivisionError("no updates")

    rule.check(check)
    return rule


def test_a_rule_that_fails_is_named_and_the_others_are_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADCLINIC_DEBUG", raising=False)
    monkeypatch.setattr(engine, "rules_for", lambda *sources: (_failing(), *rules_for(*sources)))
    observed = observe_source(next(iter(find_rule("GC109").bad.values())), "train.py")

    faults: list[str] = []
    found = engine.judge([observed], faults=faults)

    assert [finding.code for finding in found] == ["GC109"]
    assert faults[0].startswith("GC999 could not be judged: internal fault, ZeroDivisionError: no updates")
    with pytest.raises(ZeroDivisionError):
        engine.judge([observed])

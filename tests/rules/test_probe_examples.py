"""Every rule that experiments feed: its BAD case raises it, and it alone; its GOOD case raises nothing."""

from __future__ import annotations

import sys

import pytest
import torch

from gradclinic import load_case
from gradclinic.engine import judge
from gradclinic.facts import Observation, Source
from gradclinic.probes.compile import probe_compile
from gradclinic.rules import all_rules

EXPERIMENTS = {"8": lambda case: probe_compile(case, list(case.variants))}
"""What is done with a rule's cases, by the first digit of its code."""

EXAMPLES = [
    pytest.param(rule, text, bad, id=f"{rule.code}-{name}")
    for rule in all_rules()
    if Source.PROBE in rule.sources and rule.code[2] in EXPERIMENTS
    for bad, examples in ((True, rule.bad), (False, rule.good))
    for name, text in examples.items()
]


@pytest.mark.parametrize(("rule", "text", "bad"), EXAMPLES)
def test_an_example_case_is_judged_as_its_rule_says(rule, text, bad, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    torch.manual_seed(0)
    (tmp_path / "example.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    fact = EXPERIMENTS[rule.code[2]](load_case("example.py:make"))
    findings = judge([Observation(Source.PROBE, ((fact,),))])
    assert [finding.code for finding in findings] == ([rule.code] if bad else [])
    if bad:
        assert findings[0].fix is not None
        assert findings[0].location is not None
        assert findings[0].location.path == "example.py"

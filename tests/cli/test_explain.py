"""`gradclinic explain`: every rule, by any of its names."""

from __future__ import annotations

import json

import pytest

from gradclinic.rules import all_rules
from gradclinic.rules._rule import SECTIONS


@pytest.mark.parametrize("name", ["GC109", "gc109", "109", "clip-after-step", "Clip-After-Step"])
def test_a_rule_is_found_by_any_of_its_names(gradclinic, name):
    ended = gradclinic("explain", name)
    assert ended.code == 0
    assert ended.out.startswith("# GC109 clip-after-step\n")


def test_the_page_has_every_section_and_both_examples(gradclinic):
    lines = gradclinic("explain", "GC109").out.splitlines()
    titles = [line[3:] for line in lines if line.startswith("## ")]
    assert titles[: len(SECTIONS)] == list(SECTIONS)
    assert {"Bad", "Good"} <= set(titles)


def test_no_argument_lists_every_rule_within_eighty_columns(gradclinic):
    lines = gradclinic("explain").out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  GC")]
    assert listed == [rule.code for rule in all_rules()]
    assert max(map(len, lines)) <= 80
    assert "1xx: the order of the loop" in lines


def test_json_holds_the_page_in_parts(gradclinic):
    page = json.loads(gradclinic("explain", "GC109", "--format", "json").out)
    assert page["code"] == "GC109"
    assert list(page["sections"]) == list(SECTIONS)
    assert "clip_grad_norm_" in page["bad"]["bad"]
    assert len(json.loads(gradclinic("explain", "--format", "json").out)) == len(all_rules())

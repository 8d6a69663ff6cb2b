"""What a page tells of a rule beside the finding."""

from __future__ import annotations

from gradclinic.rules import all_rules

_SHOWN = ("Why it hurts", "Not the fix")


def rule_pages() -> dict[str, dict[str, str]]:
    """By code, sections of the rule's own documentation as plain text."""
    return {
        rule.code: {title: " ".join(rule.sections()[title].split()) for title in _SHOWN}
        for rule in all_rules()
    }

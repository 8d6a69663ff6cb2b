"""The rules. Every module below this package that defines `rule` is one; there is no list."""

from gradclinic.rules._discovery import UnknownRule, all_rules, find_rule, matching, rule_names, rules_for
from gradclinic.rules._page import family, found_by, page
from gradclinic.rules._rule import Rule

__all__ = [
    "Rule",
    "UnknownRule",
    "all_rules",
    "family",
    "find_rule",
    "found_by",
    "matching",
    "page",
    "rule_names",
    "rules_for",
]

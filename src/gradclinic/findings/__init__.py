"""What is said to the user: findings, ranked into a diagnosis."""

from gradclinic.findings.change import Change, Insert, Keyword, Move, Remove, Rewrite, Side, Suffix, Word
from gradclinic.findings.diagnosis import Check, Diagnosis, Point, State, Summary
from gradclinic.findings.finding import Edit, Evidence, Finding, Fix, Kind, Severity
from gradclinic.findings.table import Table

__all__ = [
    "Change",
    "Check",
    "Diagnosis",
    "Edit",
    "Evidence",
    "Finding",
    "Fix",
    "Insert",
    "Keyword",
    "Kind",
    "Move",
    "Point",
    "Remove",
    "Rewrite",
    "Severity",
    "Side",
    "State",
    "Suffix",
    "Summary",
    "Table",
    "Word",
]

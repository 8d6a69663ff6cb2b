"""What is said to the user: findings, ranked into a diagnosis."""

from gradclinic.findings.change import Change, Insert, Move, Remove, Rewrite, Side, Word
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
    "Kind",
    "Move",
    "Point",
    "Remove",
    "Rewrite",
    "Severity",
    "Side",
    "State",
    "Summary",
    "Table",
    "Word",
]

"""What is said to the user: findings, ranked into a diagnosis."""

from gradclinic.findings.diagnosis import Check, Diagnosis, Point, State, Summary
from gradclinic.findings.finding import Edit, Evidence, Finding, Fix, Kind, Severity
from gradclinic.findings.table import Table

__all__ = [
    "Check",
    "Diagnosis",
    "Edit",
    "Evidence",
    "Finding",
    "Fix",
    "Kind",
    "Point",
    "Severity",
    "State",
    "Summary",
    "Table",
]

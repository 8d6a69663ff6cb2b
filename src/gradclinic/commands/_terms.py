"""The terms of the objectives of a run, as tables and for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite

from gradclinic.facts import Observation
from gradclinic.facts.terms import LossTerm, LossTerms
from gradclinic.findings.table import Table

_APART = -0.1
_COLUMNS = ("term", "made at", "gradient norm", "share", "reaches", "most of it in")


def objectives(observations: Iterable[Observation]) -> list[LossTerms]:
    """One for each place that sends a sum backward; ranks see the same."""
    found = {
        fact.backward: fact
        for observation in observations
        for case in observation.cases
        for fact in case
        if isinstance(fact, LossTerms)
    }
    return list(found.values())


def table(objective: LossTerms) -> Table:
    whole = sum(term.norm for term in objective.terms if isfinite(term.norm))
    return Table(
        f"terms of the objective at {objective.backward}",
        _COLUMNS,
        tuple(_row(term, whole) for term in objective.terms),
        tuple(_notes(objective)),
    )


def measured(objective: LossTerms) -> dict[str, object]:
    """What is not finite is told as a word: JSON has no number for it."""
    return {
        "backward": str(objective.backward),
        "terms": [
            {
                "name": term.name,
                "where": None if term.where is None else str(term.where),
                "norm": _told(term.norm),
                "modules": {module: _told(norm) for module, norm in term.norms.items()},
            }
            for term in objective.terms
        ],
        "cosines": [
            {"first": pair.first, "second": pair.second, "cosine": pair.cosine} for pair in objective.cosines
        ],
    }


def _told(number: float) -> float | str:
    return number if isfinite(number) else str(number)


def _row(term: LossTerm, whole: float) -> tuple[str, ...]:
    strongest = max(term.norms, key=lambda module: term.norms[module], default="nothing")
    return (
        term.name,
        str(term.where or ""),
        f"{term.norm:.3g}",
        f"{term.norm / whole:.0%}" if whole and isfinite(term.norm) else "",
        f"{len(term.norms)} modules" if len(term.norms) != 1 else "1 module",
        strongest,
    )


def _notes(objective: LossTerms) -> Iterator[str]:
    for term in objective.terms:
        if not isfinite(term.norm):
            yield f"the gradient of {term.name} is not finite"
    for pair in objective.cosines:
        if pair.cosine < _APART:
            yield f"{pair.first} and {pair.second} pull apart: cosine {pair.cosine:.2f}"

"""Questions about an evaluation that two rules ask."""

from __future__ import annotations

from gradclinic.facts import Evaluation
from gradclinic.rules._naming import counted


def enough(seen: Evaluation, least: int) -> bool:
    """A run counts the forwards; a loop in the source stands for many."""
    return seen.forwards is None or seen.forwards >= least


def how_many(seen: Evaluation) -> dict[str, str]:
    return {} if seen.forwards is None else {"forwards": counted(seen.forwards, "forward")}

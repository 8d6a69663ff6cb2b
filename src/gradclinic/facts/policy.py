"""Objectives of a policy: log-probabilities weighted by what they earned."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class PolicyTerm:
    """A product of log-probabilities, or their ratios, with a reward, summed into the objective."""

    where: Location
    product: str
    """As written: `log_probs * advantages`."""
    sign: int
    """With which it enters what is minimised: -1 is the way to make rewarded actions likelier."""
    seen: int

"""A model that is given its own state: a target network that is the network, or a part of a checkpoint."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.facts import Load, Location, Observation, Source
from gradclinic.findings import Severity

HERE = Location("dqn.py", 12)


@pytest.mark.parametrize(
    ("load", "told"),  # how severely
    [
        pytest.param(Load("q_network", HERE, 6, aliases=6), Severity.INFO, id="all of it"),
        pytest.param(Load("model", HERE, 6, aliases=5), None, id="what a checkpoint did not have"),
        pytest.param(Load("model", Location("a.py", 1, via="lib.py:3"), 6, aliases=6), None, id="a library"),
        pytest.param(Load("model", HERE, 6, aliases=5, updates_before=9), Severity.ERROR, id="after updates"),
    ],
)
def test_only_a_state_that_is_all_its_own_is_told_before_updates(load: Load, told: Severity | None) -> None:
    found = judge([Observation(Source.RUNTIME, ((load,),))])
    assert {finding.code: finding.severity for finding in found}.get("GC713") is told

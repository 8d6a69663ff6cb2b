"""A file that is read by itself: what its functions do for those who call them is told of it too.

An evaluation is written in one file, and the model that it measures is left in train mode by another; a
trainer steps what a script has built. Linting both tells, and so must linting the one that holds the fault.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from gradclinic.engine import judge
from gradclinic.findings import Finding
from gradclinic.linting.modules import finder, is_worth_following
from gradclinic.static import observe_loops_with
from gradclinic.static.callers import callers_of
from gradclinic.static.project_files import text_of

MOST_ASKED = 2
"""Each is walked as if it were linted itself."""


def told_by_callers(
    path: str, text: str, codes: frozenset[str], beside: Collection[str]
) -> Iterator[Finding]:
    """Findings in the file at `path`, without what those `beside` it tell when they are read themselves."""
    if not is_worth_following(text):
        return
    here = os.path.normpath(path)
    for caller in callers_of(path, beside)[:MOST_ASKED]:
        try:
            observation = observe_loops_with(here, text_of(caller), caller, finder(caller))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # which linting that file would say
        for finding in judge([observation], codes) if observation.cases else ():
            if finding.location is not None and os.path.normpath(finding.location.path) == here:
                yield finding

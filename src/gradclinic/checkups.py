"""A diagnosis of a run that is still going on, for whoever watches it from outside."""

from __future__ import annotations

import time
from collections.abc import Callable

from gradclinic.findings import Diagnosis, Severity
from gradclinic.keeping import full_document
from gradclinic.store.documents import FINDING
from gradclinic.store.writer import Store

_SECONDS = 2.0
"""Between two checkups at least,"""
_SHARE = 300
"""and this many times what the last one took of the processor."""


def keep_checkups(store: Store, diagnose: Callable[[], Diagnosis]) -> None:
    """Now and then, what is wrong so far goes into the store."""
    due, first = time.monotonic() + _SECONDS, True

    def look(step: int) -> None:
        nonlocal due, first
        if time.monotonic() < due:
            return
        began = time.thread_time()
        try:
            _take_down(store, diagnose(), step)
        except Exception:  # the diagnosis at the end tells of it; the numbers must go on
            store.between_writings = lambda step: None
        # The first one imports the rules, which the end of the run would do otherwise.
        took = 0.0 if first else time.thread_time() - began
        due, first = time.monotonic() + max(_SECONDS, _SHARE * took), False

    store.between_writings = look


def _take_down(store: Store, diagnosis: Diagnosis, step: int) -> None:
    store.keep("diagnosis", full_document(diagnosis))
    for finding in diagnosis.findings:
        if finding.severity is not Severity.INFO:
            words = f"{finding.code} {finding.name}: {finding.message}"
            store.events.add(step, FINDING, finding.severity.value, words)

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
_SHARE = 1000
"""and this many times as long as the last one took."""


def keep_checkups(store: Store, diagnose: Callable[[], Diagnosis]) -> None:
    """Now and then, what is wrong so far goes into the store."""
    due = time.monotonic() + _SECONDS

    def look(step: int) -> None:
        nonlocal due
        began = time.monotonic()
        if began >= due:
            try:
                _take_down(store, diagnose(), step)
            except Exception:  # the diagnosis at the end tells of it; the numbers must go on
                store.between_writings = lambda step: None
            now = time.monotonic()
            due = now + max(_SECONDS, _SHARE * (now - began))

    store.between_writings = look


def _take_down(store: Store, diagnosis: Diagnosis, step: int) -> None:
    store.keep("diagnosis", full_document(diagnosis))
    for finding in diagnosis.findings:
        if finding.severity is not Severity.INFO:
            words = f"{finding.code} {finding.name}: {finding.message}"
            store.events.add(step, FINDING, finding.severity.value, words)

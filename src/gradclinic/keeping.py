"""What was found in a run is kept beside its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gradclinic.facts import Observation
from gradclinic.findings import Diagnosis
from gradclinic.reporters._excerpt import excerpt
from gradclinic.reporters.json import document
from gradclinic.store.documents import add_documents
from gradclinic.store.step_tape import one_step


def keep_diagnosis(
    run: Path, diagnosis: Diagnosis, observations: Iterable[Observation], **about: object
) -> None:
    """The last word on a run."""
    tape = one_step(observations)
    documents = {"diagnosis": full_document(diagnosis), **({"tape": tape} if tape else {})}
    add_documents(run, documents, about)


def full_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """The JSON document with the lines of source it speaks of, for they may have changed when it is read."""
    sources = [excerpt(finding.location) if finding.location else None for finding in diagnosis.findings]
    return {**document(diagnosis), "excerpts": [asdict(one) if one else None for one in sources]}

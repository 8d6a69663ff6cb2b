"""The findings a code base is adopted with: written down once, and left out of every report after.

A finding is known by its file, its rule and the text of its line, so that it stays known when lines
move. Of equal ones in a file as many are known as were written down.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from gradclinic.errors import UsageError
from gradclinic.findings import Diagnosis, Finding
from gradclinic.source_text import lines_of

SCHEMA = 1


@dataclass(frozen=True, slots=True, order=True)
class Fingerprint:
    path: str
    """From the directory of the baseline, with slashes, wherever the command runs."""
    code: str
    line: str
    """The source line, its runs of spaces made one."""


@dataclass(frozen=True)
class Baseline:
    file: Path
    known: Counter[Fingerprint]

    def without(self, diagnosis: Diagnosis) -> Diagnosis:
        """The diagnosis without what is known."""
        left = self.known.copy()
        new = []
        for finding in diagnosis.findings:
            mark = _fingerprint(finding, self.file)
            if left[mark] > 0:
                left[mark] -= 1
            else:
                new.append(finding)
        causes = {finding.code for finding in new}
        return replace(diagnosis, findings=tuple(_seen_without(finding, causes) for finding in new))


def _seen_without(finding: Finding, causes: Container[str]) -> Finding:
    """A symptom whose cause is left out stands for itself."""
    return finding if finding.explained_by in causes else replace(finding, explained_by=None)


def write_baseline(path: str, findings: Iterable[Finding]) -> None:
    file = Path(path)
    counted = Counter(_fingerprint(finding, file) for finding in findings)
    listed = [
        {"path": mark.path, "code": mark.code, "line": mark.line, "count": count}
        for mark, count in sorted(counted.items())
    ]
    text = json.dumps({"schema": SCHEMA, "findings": listed}, indent=1, ensure_ascii=False)
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write the baseline to {file}: {error.strerror}") from error


def read_baseline(path: str) -> Baseline:
    file = Path(path)
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise UsageError(
                f"{file} is a baseline of schema {document['schema']}; write it again with --write-baseline"
            )
        known = Counter[Fingerprint]()
        for one in document["findings"]:
            known[Fingerprint(str(one["path"]), str(one["code"]), str(one["line"]))] += int(one["count"])
    except OSError as error:
        raise UsageError(
            f"cannot read the baseline {file}: {error.strerror}; --write-baseline makes one"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} is not a baseline; --write-baseline makes one") from error
    return Baseline(file, known)


def _fingerprint(finding: Finding, file: Path) -> Fingerprint:
    where = finding.location
    if where is None:
        return Fingerprint("", finding.code, "")
    lines = lines_of(where.path, where.cell)
    line = lines[where.line - 1] if where.line <= len(lines) else ""
    path = Path(os.path.relpath(where.path, file.parent)).as_posix()
    return Fingerprint(path, finding.code, " ".join(line.split()))

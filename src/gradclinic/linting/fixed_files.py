"""Fixed files: as a diff, or written back the way they were encoded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gradclinic.config import Config
from gradclinic.errors import UsageError
from gradclinic.findings import Diagnosis
from gradclinic.frozen import frozen
from gradclinic.linting.examine import read
from gradclinic.linting.fixing import fix_source, fixable
from gradclinic.source_text import SourceText


@frozen
class FixedFile:
    path: str
    before: SourceText
    after: SourceText
    count: int

    def diff(self) -> Iterator[str]:
        from difflib import unified_diff  # slow to import, and most runs show no difference

        for line in unified_diff(self.before.lines, self.after.lines, self.path, self.path):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"

    def write(self) -> None:
        try:
            Path(self.path).write_bytes(self.after.text.encode(self.after.encoding))
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {error.strerror}") from error


def fix_files(diagnosis: Diagnosis, config: Config, *, unsafe: bool) -> list[FixedFile]:
    """Every file of the diagnosis that its fixes would change. Nothing is written yet."""
    found = [finding for finding in diagnosis.findings if fixable(finding, unsafe=unsafe)]
    paths = dict.fromkeys(finding.location.path for finding in found if finding.location)
    changed = []
    for path in paths:
        before = read(path)
        after, count = fix_source(before, path, config, unsafe=unsafe)
        if count:
            changed.append(FixedFile(path, before, after, count))
    return changed

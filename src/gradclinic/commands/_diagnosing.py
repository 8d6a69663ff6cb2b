"""From what was observed of a run to its diagnosis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from gradclinic.commands._terms import measured, objectives, table
from gradclinic.config import Config
from gradclinic.engine import judge
from gradclinic.facts import Observation
from gradclinic.findings import Diagnosis, Finding, Summary
from gradclinic.ignores import without_ignored
from gradclinic.judged import judged
from gradclinic.source_text import UnreadableSource, read_source


def diagnose(
    target: str,
    observations: Sequence[Observation],
    config: Config,
    summary: Summary,
    problems: tuple[str, ...],
) -> Diagnosis:
    # A run may have taken hours: one rule that fails must not cost what the others found.
    faults: list[str] = []
    findings = _wanted(judge(observations, config.codes(), faults), config)
    looked_at = judged(observations, findings)
    sums = objectives(observations)
    return Diagnosis(
        command="run",
        target=target,
        findings=findings,
        judged=looked_at.topics,
        checklist=looked_at.checklist,
        summary=summary,
        problems=(*problems, *faults),
        tables=tuple(map(table, sums)),
        measured={"objectives": [measured(one) for one in sums]} if sums else {},
    )


def _wanted(findings: tuple[Finding, ...], config: Config) -> tuple[Finding, ...]:
    """Without what the configuration or a comment silences in the file a finding lies in."""
    by_file: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_file[finding.location.path if finding.location else ""].append(finding)
    kept: list[Finding] = []
    for path, here in by_file.items():
        apply = [finding for finding in here if finding.code in config.codes(path)]
        try:
            kept.extend(without_ignored(apply, read_source(path).text))
        except (OSError, UnreadableSource, SyntaxError):
            kept.extend(apply)
    return tuple(finding for finding in findings if finding in kept)

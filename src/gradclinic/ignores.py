"""`# gradclinic: ignore[GC109]` comments, and the findings they silence."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable

from gradclinic.errors import UsageError
from gradclinic.findings import Finding
from gradclinic.rules import matching, rule_names

MARK = "gradclinic:"
_COMMENT = re.compile(r"#\s*gradclinic:\s*ignore\b(?:\s*\[([^\]]*)\])?")


def without_ignored(findings: Iterable[Finding], text: str) -> tuple[Finding, ...]:
    """The findings on lines of `text` that no comment silences."""
    findings = tuple(findings)
    if not findings or MARK not in text:
        return findings
    ignored = ignored_by_line(text)
    return tuple(f for f in findings if f.location is None or f.code not in ignored.get(f.location.line, ()))


def ignored_by_line(text: str) -> dict[int, frozenset[str]]:
    """Codes silenced on each line. A comment speaks for all lines of the statement it stands in."""
    ignored: dict[int, frozenset[str]] = {}
    codes: frozenset[str] = frozenset()
    first = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                codes |= _codes(token.string)
            elif token.type == tokenize.NEWLINE or (token.type == tokenize.NL and not first):
                if codes:
                    ignored.update(dict.fromkeys(range(first or token.start[0], token.start[0] + 1), codes))
                codes, first = frozenset(), 0
            elif not first and token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        pass  # what cannot be tokenized has no findings to silence either
    return ignored


def _codes(comment: str) -> frozenset[str]:
    match = _COMMENT.search(comment)
    if match is None:
        return frozenset()
    if match[1] is None:
        return frozenset(rule_names())
    return frozenset().union(*(_matching(word) for word in match[1].split(",")))


def _matching(word: str) -> frozenset[str]:
    try:
        return matching(word)
    except UsageError:
        return frozenset()

"""The stored diagnosis, laid out for a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradclinic.store.reader import StoredRun

Pages = Mapping[str, Mapping[str, str]]
"""Of each code, sections of what is known of it."""
_WORDS = (("error", "error"), ("warning", "warning"), ("info", "note"))


@dataclass(frozen=True)
class Found:
    worst: str
    """The severity of the worst finding; `good` when there is none, `unknown` without a diagnosis."""
    verdict: str
    seen: str
    unfinished: bool
    cards: list[dict[str, Any]]
    checklist: list[dict[str, Any]]
    judged: list[dict[str, Any]]
    problems: list[str]


def found_in(run: StoredRun, pages: Pages) -> Found:
    document = run.documents.get("diagnosis")
    if document is None:
        return Found("info", "No diagnosis yet", "", False, [], [], [], [])
    summary = document["summary"]
    counts = [(word, summary[severity]) for severity, word in _WORDS if summary[severity]]
    worst = next((severity for severity, _ in _WORDS if summary[severity]), "good")
    return Found(
        worst,
        ", ".join(_amount(count, word) for word, count in counts) or "Nothing found",
        _amount(summary["steps"], "step"),
        run.state == "running",
        list(_cards(document, pages)),
        document["checklist"],
        document["judged"],
        document["problems"],
    )


def _cards(document: Mapping[str, Any], pages: Pages) -> list[dict[str, Any]]:
    """Causes in the order of the ranking, each followed by the symptoms it explains."""
    excerpts = document.get("excerpts") or [None] * len(document["findings"])
    cards = [
        _card(finding, excerpt, pages)
        for finding, excerpt in zip(document["findings"], excerpts, strict=True)
    ]
    causes = [card for card in cards if not card["explained_by"]]
    ordered = [
        one for cause in causes for one in (cause, *(c for c in cards if c["explained_by"] == cause["code"]))
    ]
    return list({id(card): card for card in [*ordered, *cards]}.values())


def _card(finding: Mapping[str, Any], excerpt: Mapping[str, Any] | None, pages: Pages) -> dict[str, Any]:
    where = finding["location"]
    cell = f":cell {where['cell']}" if where and where.get("cell") is not None else ""
    return {
        **{key: finding[key] for key in ("code", "name", "severity", "message", "evidence")},
        "where": f"{where['path']}{cell}:{where['line']}" if where else "",
        "explained_by": finding.get("explained_by"),
        "ranks": finding.get("ranks", []),
        "fix": (finding["fix"] or {}).get("text", ""),
        "excerpt": excerpt,
        "sections": pages.get(finding["code"], {}),
    }


def _amount(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

"""Tell what a rule finds, why it hurts, what to do and what not to do instead.

gradclinic explain                  lists all rules
gradclinic explain GC109            or clip-after-step, or 109: the page of one
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import groupby
from typing import Any

from gradclinic.rules import Rule, all_rules, family, find_rule, found_by, page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", nargs="?", metavar="CODE|NAME", help="a code such as GC109, or a name")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="how to print (default: text)"
    )


def run(args: argparse.Namespace) -> int:
    rules = [find_rule(args.rule)] if args.rule else list(all_rules())
    if args.format == "json":
        shown = [_as_data(rule) for rule in rules]
        print(json.dumps(shown[0] if args.rule else shown, indent=2, ensure_ascii=False))
    elif args.rule:
        _show(page(rules[0]))
    else:
        print("\n".join(_listing(rules)))
    return 0


def _show(markdown: str) -> None:
    """Rendered for a terminal; a pipe gets the markdown itself."""
    if not sys.stdout.isatty():
        print(markdown, end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    # The terminal's own colours and no background, so that code reads on dark and on light.
    console = Console(theme=Theme({"markdown.code": "bold cyan", "markdown.h2": "bold"}))
    console.print(Markdown(markdown, code_theme="ansi_dark", justify="left"), width=min(console.width, 100))


def _listing(rules: list[Rule]) -> list[str]:
    width = max(len(rule.name) for rule in rules)
    lines: list[str] = []
    for title, members in groupby(rules, family):
        lines += ["", title] if lines else [title]
        lines += [
            f"  {rule.code} {rule.name:<{width}}  {rule.severity:<7}  {found_by(rule)}" for rule in members
        ]
    return [*lines, "", f"{len(rules)} rules; `gradclinic explain CODE` opens the page of one"]


def _as_data(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity,
        "kind": rule.kind,
        "sources": list(rule.sources),
        "since": rule.since,
        "family": family(rule),
        "summary": rule.summary,
        "sections": rule.sections(),
        "bad": rule.bad,
        "good": rule.good,
    }

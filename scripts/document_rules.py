"""Write docs/rules from the rule files: one page each and an index.

python scripts/document_rules.py            writes the pages
python scripts/document_rules.py DIRECTORY  writes them there instead
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from gradclinic.rules import Rule, all_rules, family, found_by, page

RULES = Path(__file__).parent.parent / "docs" / "rules"
TABLE = ("| code | name | severity | found by | what |", "|---|---|---|---|---|")


def documents() -> dict[str, str]:
    """Every page by its file name."""
    rules = all_rules()
    pages = {file_name(rule): page(rule) for rule in rules}
    return {**pages, "README.md": index(rules)}


def file_name(rule: Rule) -> str:
    return f"{rule.code}-{rule.name}.md"


def index(rules: tuple[Rule, ...]) -> str:
    parts = ["# Rules\n\nMade from the rule files by `make docs-rules`; do not edit."]
    for title, members in groupby(rules, family):
        parts.append("\n".join([f"## {title}\n", *TABLE, *map(row, members)]))
    return "\n\n".join(parts) + "\n"


def row(rule: Rule) -> str:
    cells = (f"[{rule.code}]({file_name(rule)})", rule.name, rule.severity, found_by(rule), rule.summary)
    return f"| {' | '.join(cells)} |"


def write(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    wanted = documents()
    for stale in set(directory.glob("*.md")) - {directory / name for name in wanted}:
        stale.unlink()
    for name, text in wanted.items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else RULES)

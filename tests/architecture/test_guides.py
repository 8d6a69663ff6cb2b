"""What the guides tell people to type exists: commands, options, rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradclinic.cli import command_names
from gradclinic.commands.probe import kind_names
from gradclinic.rules import all_rules
from tests.conftest import SOURCE

ROOT = SOURCE.parent
GUIDES = [ROOT / "README.md", ROOT / "SKILL.md", *sorted((ROOT / "docs").glob("**/*.md"))]
WRITTEN = [guide for guide in GUIDES if guide.parent.name != "rules"]
COMMAND = re.compile(r"^(?:[$>] |    )gradclinic ([a-z]+)(.*)$|`gradclinic ([a-z]+)([^`]*)`", re.MULTILINE)


def _typed(guide: Path) -> list[tuple[str, str]]:
    """Each `gradclinic COMMAND …` of a guide, in a sentence, a table or a console block."""
    text = guide.read_text(encoding="utf-8")
    return [(found[1] or found[3], found[2] or found[4] or "") for found in COMMAND.finditer(text)]


@pytest.mark.parametrize("guide", WRITTEN, ids=lambda guide: str(guide.relative_to(ROOT)))
def test_a_guide_speaks_of_what_there_is(guide):
    typed = _typed(guide)
    assert {name for name, _ in typed} <= set(command_names())
    experiments = [words.split()[0] for name, words in typed if name == "probe" and words.split()]
    assert set(experiments) <= set(kind_names())
    rules = {rule.code for rule in all_rules()}
    assert set(re.findall(r"\bGC\d{3}\b", guide.read_text(encoding="utf-8"))) <= rules


@pytest.mark.parametrize("name", command_names())
def test_options_in_the_guides_are_options_of_the_command(gradclinic, name):
    used = {
        option
        for guide in WRITTEN
        for command, words in _typed(guide)
        if command == name
        # What follows a script belongs to the script.
        for option in re.findall(r"--[a-z-]+", re.split(r"\.py\b|SCRIPT|-m ", words)[0])
    }
    kinds = kind_names() if name == "probe" else []
    helps = gradclinic(name, "--help").out + "".join(gradclinic(name, kind, "--help").out for kind in kinds)
    assert {option for option in used if option not in helps} == set()

"""The site builds without a warning, holds every rule, and shows what the commands print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gradclinic.gallery import HOME
from gradclinic.rules import all_rules
from tests.conftest import SOURCE

ROOT = SOURCE.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    built = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(built)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return built


def test_every_rule_has_a_page_on_the_site(site):
    pages = {path.name.partition("-")[0] for path in (site / "rules").glob("GC*.html")}
    assert pages == {rule.code for rule in all_rules()}


def test_no_page_fetches_anything_from_elsewhere(site):
    fetched = re.compile(r"<(?:script|link|img)[^>]+(?:src|href)=\"(?:https?:)?//[^\"]+\"")
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(all_rules())
    assert [found for page in pages for found in fetched.findall(page.read_text(encoding="utf-8"))] == []


def _console(guide: str) -> tuple[list[str], list[str]]:
    """The words after the prompt of the first console block, and the lines below it."""
    block = (DOCS / guide).read_text(encoding="utf-8").split("```console\n", 1)[1].split("```", 1)[0]
    prompt, *shown = block.splitlines()
    return prompt.removeprefix("$ gradclinic ").split(), shown


def test_the_first_report_is_real(gradclinic, tmp_path):
    words, shown = _console("index.md")
    shutil.copy(HOME / words[-1], tmp_path)
    assert gradclinic(*words).out.splitlines() == shown


def test_the_first_experiment_is_real(gradclinic, tmp_path):
    words, shown = _console("howto/probe.md")
    case = (DOCS / "howto/probe.md").read_text(encoding="utf-8").split("```python\n", 1)[1].split("```", 1)[0]
    (tmp_path / "case.py").write_text(case)
    assert gradclinic(*words).out.splitlines()[: len(shown)] == shown

"""The shape of the package: its layers, its sizes, what importing it costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SOURCE

ROOT = SOURCE.parent
LONGEST_FILE = 400


def _python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        cwd=ROOT,
    )


def test_imports_follow_the_layers():
    done = _python("from importlinter.cli import lint_imports_command; lint_imports_command()")
    assert done.returncode == 0, done.stdout
    assert " 0 broken" in done.stdout


def test_no_file_is_longer_than_it_may_be():
    files = [path for folder in ("src", "tests", "scripts") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 20
    long = {str(path.relative_to(ROOT)): lines for path in files if (lines := _lines(path)) > LONGEST_FILE}
    assert long == {}


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_importing_the_package_imports_next_to_nothing():
    before_and_after = (
        "import sys; before = set(sys.modules); import gradclinic; import json; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    imported = [name.partition(".")[0] for name in json.loads(_python(before_and_after).stdout)]
    assert {"torch", "rich", "jinja2", "numpy", "argparse"}.isdisjoint(imported)


NO_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numpy"):
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, NoTorch())
from gradclinic.cli import main
code = main(sys.argv[1:])
assert "torch" not in sys.modules
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("words", "code"), [(["lint", "train.py"], 1), (["explain", "GC109"], 0), (["explain"], 0)]
)
def test_reading_code_needs_no_torch(sick_script, words, code):
    done = _python(NO_TORCH, *[str(sick_script) if word == "train.py" else word for word in words])
    assert done.returncode == code, done.stderr
    assert "GC109" in done.stdout
    assert done.stderr == ""


def test_lint_imports_no_torch_where_torch_is_installed(sick_script):
    code = "import sys; from gradclinic.cli import main; main(sys.argv[1:]); sys.exit('torch' in sys.modules)"
    assert _python(code, "lint", str(sick_script)).returncode == 0

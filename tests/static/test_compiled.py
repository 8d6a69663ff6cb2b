"""What Python has compiled is valid; anything else is still asked."""

from __future__ import annotations

import os
import py_compile
from pathlib import Path

import pytest

from gradclinic.static.compiled import is_compiled
from gradclinic.static.legacy import check

VALID = "x = 1\n"
BROKEN = "x = (\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "module.py"
    file.write_text(VALID)
    py_compile.compile(str(file), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    return file


def test_a_source_that_was_compiled_is_known(source: Path) -> None:
    assert is_compiled(VALID, str(source))


def test_another_text_than_the_file_has_is_not(source: Path) -> None:
    assert not is_compiled(BROKEN, str(source))
    with pytest.raises(SyntaxError):
        check(BROKEN, str(source))


def test_a_file_that_changed_since_is_not(source: Path) -> None:
    compiled = os.stat(source)
    source.write_text(BROKEN)
    os.utime(source, ns=(compiled.st_atime_ns, compiled.st_mtime_ns + 2_000_000_000))
    assert not is_compiled(BROKEN, str(source))
    with pytest.raises(SyntaxError):
        check(BROKEN, str(source))


def test_what_is_no_file_is_not() -> None:
    assert not is_compiled(VALID, "<stdin>")


def test_a_damaged_compiled_file_tells_nothing(source: Path) -> None:
    next(source.parent.glob("__pycache__/*.pyc")).write_bytes(b"\0" * 40)
    assert not is_compiled(VALID, str(source))

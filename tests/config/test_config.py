"""[tool.gradclinic] of pyproject.toml, read as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def configure(tmp_path: Path):
    def write(text: str) -> None:
        (tmp_path / "pyproject.toml").write_text(text)

    return write


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ('ignore = ["GC109"]', 0),
        ('ignore = ["clip-after-step"]', 0),
        ('select = ["GC5"]', 0),
        ('select = ["GC1"]', 1),
        ('fail-on = "never"', 0),
        ('exclude = ["train.py"]', 0),
        ('exclude = ["tr*.py"]', 0),
        ('exclude = ["other"]', 1),
        ('per-file-ignores = {"train.py" = ["GC1"]}', 0),
        ('per-file-ignores = {"*/train.py" = ["GC1"]}', 1),
        ('per-file-ignores = {"train.py" = ["GC5"]}', 1),
    ],
)
def test_settings_count(gradclinic, sick_script, configure, table, code):
    configure(f"[tool.gradclinic]\n{table}\n")
    assert gradclinic("lint", ".").code == code


def test_the_command_line_overrules_the_file(gradclinic, sick_script, configure):
    configure('[tool.gradclinic]\nselect = ["GC5"]\nfail-on = "never"\n')
    assert gradclinic("lint", "--select", "GC1", "--fail-on", "error").code == 1


def test_the_nearest_file_with_a_table_counts(gradclinic, sick_script, configure, tmp_path):
    configure('[tool.gradclinic]\nignore = ["GC109"]\n')
    below = tmp_path / "project" / "src"
    below.mkdir(parents=True)
    sick_script.rename(below / "train.py")
    (tmp_path / "project" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert gradclinic("lint", "project").code == 0
    (tmp_path / "project" / "pyproject.toml").write_text("[tool.gradclinic]\nselect = ['GC1']\n")
    assert gradclinic("lint", "project").code == 1


def test_patterns_start_at_the_file_that_holds_them(gradclinic, sick_script, tmp_path):
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    sick_script.rename(project / "src" / "train.py")
    (project / "pyproject.toml").write_text('[tool.gradclinic]\nexclude = ["src/train.py"]\n')
    assert gradclinic("lint", "project").code == 0


def test_an_excluded_file_that_is_named_is_read(gradclinic, sick_script, configure):
    configure('[tool.gradclinic]\nexclude = ["train.py"]\n')
    assert gradclinic("lint", "train.py").code == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.gradclinic\n", "pyproject.toml is not valid TOML: "),
        ("[tool]\ngradclinic = 3\n", "tool.gradclinic must be a table"),
        ("[tool.gradclinic]\nselct = []\n", "selct is not a setting; there are select, ignore, fail-on, "),
        ('[tool.gradclinic]\nselect = "GC1"\n', "select must be a list of strings"),
        ("[tool.gradclinic]\nignore = [109]\n", "ignore must be a list of strings"),
        ('[tool.gradclinic]\nignore = ["GC999"]\n', "ignore: 'GC999' selects no rule"),
        ('[tool.gradclinic]\nfail-on = "errors"\n', "fail-on is 'errors'; it must be one of error, "),
        ("[tool.gradclinic]\nfail-on = [1]\n", "fail-on is [1]; it must be one of error, "),
        ("[tool.gradclinic]\nper-file-ignores = []\n", "per-file-ignores must be a table"),
        (
            '[tool.gradclinic.per-file-ignores]\n"a.py" = ["x"]\n',
            "per-file-ignores.a.py: 'x' selects no rule",
        ),
    ],
)
def test_a_broken_configuration_is_one_clear_line(gradclinic, sick_script, configure, text, said):
    configure(text)
    ended = gradclinic("lint", "train.py")
    assert ended.code == 2
    assert ended.out == ""
    assert ended.error_line.startswith("gradclinic: pyproject.toml")
    assert said in ended.error_line


def test_a_pyproject_that_does_not_speak_of_us_is_not_judged(gradclinic, sick_script, configure):
    configure("[broken\n")
    assert gradclinic("lint", "train.py").code == 1

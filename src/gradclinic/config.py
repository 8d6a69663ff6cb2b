"""`[tool.gradclinic]` of the nearest pyproject.toml, checked key by key.

Paths are plain strings: pathlib takes longer to import than most files take to be read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from fnmatch import fnmatchcase
from typing import Any

from gradclinic.errors import UsageError
from gradclinic.findings import Severity
from gradclinic.frozen import sealed
from gradclinic.rules import UnknownRule, matching, rule_names

FAIL_ON = (*(severity.value for severity in Severity), "never")


@sealed
class Config:
    root: str | None = None
    """Where patterns of paths start: the directory of the pyproject.toml that was read."""
    select: frozenset[str] | None = None
    """Codes to judge; None means all."""
    ignore: frozenset[str] = frozenset()
    fail_on: Severity | None = Severity.ERROR
    """None: findings never fail the command."""
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, frozenset[str]] = field(default_factory=dict)
    store: bool = True
    """`run` keeps what it saw in .gradclinic/."""

    def overruled(
        self, *, select: tuple[str, ...], ignore: tuple[str, ...], fail_on: Severity | None
    ) -> Config:
        """This configuration with the command line's words: they replace `select` and add to `ignore`."""
        return replace(
            self,
            select=_codes(select, "--select") if select else self.select,
            ignore=self.ignore | _codes(ignore, "--ignore"),
            fail_on=fail_on,
        )

    def codes(self, path: str = "") -> frozenset[str]:
        """The rules that apply to this file."""
        chosen = frozenset(rule_names()) if self.select is None else self.select
        ignored = set(self.ignore)
        for pattern, codes in self.per_file_ignores.items():
            if path and self._matches(pattern, path):
                ignored |= codes
        return chosen - ignored

    def excludes(self, path: str) -> bool:
        return any(self._matches(pattern, path) for pattern in self.exclude)

    def _matches(self, pattern: str, path: str) -> bool:
        """True if the pattern is the path from the root, one of its parents, or a name within it."""
        parts = os.path.relpath(path, self.root).split(os.sep)
        parents = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        wanted = pattern.rstrip("/")
        return any(fnmatchcase(candidate, wanted) for candidate in (".", *parents, *parts))


def nearest(targets: Iterable[str]) -> Config:
    """The configuration of the project the targets belong to: upward from their common directory."""
    directory, below = _common_directory([target for target in targets if target != "-"]), ""
    while directory != below:
        table = _table(os.path.join(directory, "pyproject.toml"))
        if table is not None:
            return _parsed(table, directory)
        directory, below = os.path.dirname(directory), directory
    return Config()


def _common_directory(targets: list[str]) -> str:
    if not targets:
        return os.getcwd()
    try:
        common = os.path.commonpath([os.path.abspath(target) for target in targets])
    except ValueError:  # different drives on Windows
        return os.getcwd()
    return common if os.path.isdir(common) else os.path.dirname(common)


def _table(file: str) -> dict[str, Any] | None:
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {_shown(file)}: {error}") from error
    if "gradclinic" not in text:
        return None
    import tomllib  # slow to import, and many projects have nothing to configure

    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{_shown(file)} is not valid TOML: {error}") from error
    table = tool.get("gradclinic") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{_shown(file)}: tool.gradclinic must be a table, [tool.gradclinic]")
    return table


def _parsed(table: dict[str, Any], root: str) -> Config:
    values: dict[str, Any] = {}
    for key, value in table.items():
        where = f"{_shown(os.path.join(root, 'pyproject.toml'))}: [tool.gradclinic] {key}"
        if key not in _KEYS:
            raise UsageError(f"{where} is not a setting; there are {', '.join(_KEYS)}")
        values[key.replace("-", "_")] = _KEYS[key](value, where)
    return Config(root=root, **values)


def fail_on(value: object, where: str) -> Severity | None:
    if value not in FAIL_ON:
        raise UsageError(f"{where} is {value!r}; it must be one of {', '.join(FAIL_ON)}")
    return None if value == "never" else Severity(str(value))


def _codes(words: Iterable[str], where: str) -> frozenset[str]:
    try:
        return frozenset().union(*(matching(word) for word in words))
    except UnknownRule as error:
        raise UsageError(f"{where}: {error}") from error


def _strings(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f'{where} must be a list of strings, such as ["GC109"]; it is {value!r}')
    return tuple(value)


def _yes_or_no(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{where} must be true or false; it is {value!r}")
    return value


def _codes_by_pattern(value: object, where: str) -> dict[str, frozenset[str]]:
    if not isinstance(value, dict):
        raise UsageError(
            f'{where} must be a table of path patterns, such as {{"tests/*" = ["GC1"]}}; it is {value!r}'
        )
    return {
        pattern: _codes(_strings(words, f"{where}.{pattern}"), f"{where}.{pattern}")
        for pattern, words in value.items()
    }


_KEYS: dict[str, Callable[[object, str], object]] = {
    "select": lambda value, where: _codes(_strings(value, where), where),
    "ignore": lambda value, where: _codes(_strings(value, where), where),
    "fail-on": fail_on,
    "exclude": _strings,
    "per-file-ignores": _codes_by_pattern,
    "store": _yes_or_no,
}


def _shown(file: str) -> str:
    """The path as a user would type it."""
    return min(os.path.relpath(file), file, key=len)

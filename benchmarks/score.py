"""How many listed faults of public code `lint` finds, and how much code that is right it flags.

    python -m benchmarks.score LIST.tsv… --repositories DIR [--near N] [--verbose]

A list has a header and one row a place. A list of faults has `code`, `lines`, `source` and `why`, where
source is `owner/name@commit:path`, and a code that begins with `-` marks what looks like it and is right.
A list of right files has `repo`, `commit` and `path`: whatever is told of them at warning or above is shown,
to be read. DIR holds the repositories as git has them, in folders named `owner+name`. Each file is linted
alone, as a user would, from within its checkout; a fault counts as found if its code is told at one of its
lines, or at most N lines off.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

READ = (".py", ".ipynb", ".toml")
TOLD = {"error", "warning"}
JOBS = 2


@dataclass(frozen=True)
class Place:
    repository: str
    commit: str
    path: str
    code: str = ""
    lines: tuple[int, ...] = ()

    @property
    def wanted(self) -> str:
        return self.code.removeprefix("-")

    def __str__(self) -> str:
        lines = f":{','.join(map(str, self.lines))}" if self.lines else ""
        return f"{self.code} {self.repository}@{self.commit[:12]}:{self.path}{lines}".strip()


@dataclass(frozen=True)
class Told:
    code: str
    severity: str
    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.code} {self.path}:{self.line} {self.severity}"


def listed(path: Path) -> Iterator[Place]:
    with path.open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE):
            if "repo" in row:
                yield Place(row["repo"], row["commit"], row["path"])
                continue
            where, _, file = row["source"].partition(":")
            repository, _, commit = where.partition("@")
            lines = tuple(int(line) for line in row["lines"].split(",") if line.strip())
            yield Place(repository, commit, file, row["code"], lines)


def git(repository: Path, *words: str, given: bytes = b"") -> bytes:
    command = ["git", "-C", str(repository), "-c", "core.quotePath=false", *words]
    answer = subprocess.run(command, input=given, capture_output=True, check=False)
    if answer.returncode:
        sys.exit(f"{repository}: git {words[0]}: {answer.stderr.decode(errors='replace').strip()}")
    return answer.stdout


def checked_out(place: Place, repositories: Path, under: Path) -> Path:
    """What lint may ask of the commit of `place`, as files; what a snapshot of it lacks is left out."""
    folder = under / f"{place.repository.replace('/', '+')}@{place.commit[:12]}"
    if folder.is_dir():
        return folder
    held = repositories / place.repository.replace("/", "+")
    repository = next((path for path in (held / "repo" / ".git", held / "repo", held) if path.exists()), None)
    if repository is None:
        sys.exit(f"{held}: {place.repository} is not there")
    tree = git(repository, "ls-tree", "-r", "-z", place.commit).decode("utf-8", "surrogateescape")
    blobs = [entry.split("\t", 1) for entry in tree.split("\0") if "\t" in entry]
    wanted = [(meta.split()[2], name) for meta, name in blobs if name.endswith(READ) and meta[:3] == "100"]
    batch = git(repository, "cat-file", "--batch", given="\n".join(key for key, _ in wanted).encode() + b"\n")
    unfinished = Path(tempfile.mkdtemp(dir=under, prefix=".unfinished-"))
    (unfinished / ".git").mkdir()  # where the project ends, as in a clone
    for _, name in wanted:
        header, _, batch = batch.partition(b"\n")
        if header.endswith(b" missing"):
            continue
        size = int(header.split()[2])
        file = unfinished / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(batch[:size])
        batch = batch[size + 1 :]
    return unfinished.rename(folder)


def told(folder: Path, path: str) -> list[Told]:
    # -P: what lies in the checkout is read, and never imported.
    lint = [sys.executable, "-P", "-m", "gradclinic", "lint", "--format", "json", "--fail-on", "never"]
    answer = subprocess.run([*lint, path], cwd=folder, capture_output=True, text=True, check=False)
    if answer.returncode or answer.stderr:
        print(f"{folder.name}:{path}: exit {answer.returncode} {answer.stderr.strip()}", file=sys.stderr)
    if not answer.stdout:
        return []
    findings = json.loads(answer.stdout)["findings"]
    places = ((each, each["location"]) for each in findings)
    return [Told(each["code"], each["severity"], where["path"], where["line"]) for each, where in places]


def hit(place: Place, findings: list[Told], near: int) -> bool:
    return any(
        finding.code == place.wanted and any(abs(finding.line - line) <= near for line in place.lines)
        for finding in findings
        if Path(finding.path) == Path(place.path)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("lists", nargs="+", type=Path)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--checkouts", type=Path, help="where to keep the files for the next time")
    parser.add_argument("--near", type=int, default=0, metavar="N")
    parser.add_argument("--verbose", action="store_true", help="what else is told of a missed one's file")
    args = parser.parse_args()
    for path in (*args.lists, args.repositories):
        if not path.exists():
            parser.error(f"{path}: there is no such file or directory")
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(JOBS) as pool:
        under = (args.checkouts or Path(scratch)).resolve()
        under.mkdir(parents=True, exist_ok=True)
        for path in args.lists:
            places = list(listed(path))
            folders = [checked_out(place, args.repositories.resolve(), under) for place in places]
            found = list(pool.map(told, folders, [place.path for place in places]))
            show(path, list(zip(places, found, strict=True)), args.near, args.verbose)


def show(path: Path, rows: list[tuple[Place, list[Told]]], near: int, verbose: bool) -> None:
    print(f"{path.name}:")
    faults = [row for row in rows if row[0].code and not row[0].code.startswith("-")]
    alike = [row for row in rows if row[0].code.startswith("-")]
    right = [row for row in rows if not row[0].code]
    missed = [row for row in faults if not hit(*row, near)]
    flagged = [row for row in alike if hit(*row, near)]
    if faults:
        print(f"  {len(faults) - len(missed)} of {len(faults)} faults found")
    for place, findings in missed:
        print(f"    missed  {place}")
        for finding in findings if verbose else ():
            print(f"            told: {finding}")
    if alike:
        print(f"  {len(flagged)} of {len(alike)} look-alikes flagged")
    for place, _ in flagged:
        print(f"    flagged {place}")
    if right:
        alarms = [(place, [each for each in findings if each.severity in TOLD]) for place, findings in right]
        print(f"  {sum(1 for _, findings in alarms if findings)} of {len(right)} files with an alarm")
        for place, findings in alarms:
            for finding in findings:
                print(f"    {place}: {finding}")


if __name__ == "__main__":
    main()

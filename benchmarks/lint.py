"""Files per second of processor time, `gradclinic lint` against TorchFix, on the same files in one run.

    python -m benchmarks.lint [--files N] [--every] [PATH…]

Both run as their users run them, one process each, start-up included. The files are dealt into batches, and
every batch is read by both in turn, so that a busy machine is busy for both. Without a path, files of the
installed environment are read. Files that train something are the hardest for `lint`, and the only ones read
unless --every asks for all that speak of torch, which is what a project is made of.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

BATCH = 100
"""About as many as a project has: both tools are started for each batch."""
EVERY = (b"torch",)
TRAINING = (b"torch", b"backward(")
COMMANDS = {
    "gradclinic": ["-m", "gradclinic", "lint", "--jobs", "1", "--quiet", "--fail-on", "never"],
    "TorchFix": ["-m", "torchfix", "--jobs", "1"],
}


@dataclass
class Speed:
    files: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        return self.files / self.seconds


def processor_time(words: list[str]) -> float:
    """Of the process and of all it starts."""
    before = os.times()
    silent = subprocess.DEVNULL
    subprocess.run([sys.executable, *words], stdout=silent, stderr=silent, check=False)
    after = os.times()
    return (after.children_user - before.children_user) + (after.children_system - before.children_system)


def chosen(paths: list[Path], count: int, words: tuple[bytes, ...] = TRAINING) -> list[str]:
    """Some of the files below `paths` that hold all of `words`. TorchFix looks at none without torch."""
    found = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    chosen = [file for file in found if file.is_file() and _holds(file.read_bytes(), words)]
    random.Random(1).shuffle(chosen)
    return [str(file) for file in chosen[:count]]


def _holds(text: bytes, words: tuple[bytes, ...]) -> bool:
    return all(word in text for word in words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[Path(sysconfig.get_path("purelib"))])
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--every", action="store_true", help="all files that speak of torch")
    args = parser.parse_args()
    files = chosen(args.paths, args.files, EVERY if args.every else TRAINING)
    measured = "files that speak of torch" if args.every else "files that train something"
    if not files:
        sys.exit(f"no {measured} in {', '.join(map(str, args.paths))}")
    speeds = {name: Speed() for name in COMMANDS}
    for first in range(0, len(files), BATCH):
        batch = files[first : first + BATCH]
        for name, words in COMMANDS.items():
            speeds[name].files += len(batch)
            speeds[name].seconds += processor_time([*words, *batch])
    lines = sum(len(Path(file).read_bytes().splitlines()) for file in files)
    print(f"{len(files)} {measured}, {lines / len(files):.0f} lines each, in batches of {BATCH}")
    for name, speed in speeds.items():
        took = f"({speed.files} files, {speed.seconds:.1f} s)"
        print(f"{name:<10}  {speed.rate:7.2f} files per CPU second  {took}")
    print(f"{'ratio':<10}  {speeds['gradclinic'].rate / speeds['TorchFix'].rate:7.1f}")


if __name__ == "__main__":
    main()

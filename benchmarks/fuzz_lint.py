"""Lint everything that can be found, and many damaged copies of it: no fault, no file that takes long.

    python -m benchmarks.fuzz_lint [--mutants N] [--seed N] [DIRECTORY…]

Without a directory, all Python files of the installed environment are read. Mutants are made of those that
train and of the rules' own examples: bytes dropped, lines swapped, doubled or taken out, the end cut off.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import sysconfig
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from gradclinic.config import Config
from gradclinic.linting.examine import examine_text
from gradclinic.rules import all_rules
from gradclinic.source_text import UnreadableSource, decode

LIMIT_S = 5.0
LARGEST_TO_MUTATE = 60_000
CONFIG = Config()


class TookTooLong(Exception):
    pass


@dataclass
class Tally:
    limit_s: float = 0.0
    """Of processor time for one file; 0 for none."""
    ended: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")
    failures: list[str] = field(default_factory=list)

    def lint(self, data: bytes, name: str) -> None:
        """Read `data` as the command would. Only text that is no Python may end in an error."""
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, self.limit_s)
        try:
            found = examine_text(decode(data), name, CONFIG).findings
            self.ended["with findings" if found else "clean"] += 1
        except (SyntaxError, UnreadableSource):
            self.ended["not Python"] += 1
        except (RecursionError, MemoryError):  # Python's parser gives up on what is nested too deeply
            self.ended["nested too deeply"] += 1
        except Exception as error:  # what is looked for
            self.ended["failed"] += 1
            self.failures.append(f"{name}: {type(error).__name__}: {error}")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        self.slowest = max(self.slowest, (time.process_time() - started, name))

    def told(self, what: str) -> str:
        counts = ", ".join(f"{count:,} {how}" for how, count in self.ended.most_common())
        seconds, name = self.slowest
        return f"{sum(self.ended.values()):,} {what}: {counts}; slowest {seconds:.2f} s ({name})"


def drop_bytes(data: bytes, chance: random.Random) -> bytes:
    kept = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        if kept:
            del kept[chance.randrange(len(kept))]
    return bytes(kept)


def swap_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    for _ in range(chance.randint(1, 4)):
        i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
    return b"".join(lines)


def swap_neighbours(data: bytes, chance: random.Random) -> bytes:
    """Mostly still Python: the statements of a block in another order."""
    lines = data.splitlines(keepends=True)
    for _ in range(chance.randint(1, 3)):
        i = chance.randrange(max(1, len(lines) - 1))
        lines[i : i + 2] = lines[i : i + 2][::-1]
    return b"".join(lines)


def change_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    for _ in range(chance.randint(1, 4)):
        i = chance.randrange(len(lines))
        lines[i : i + 1] = chance.choice(([], [lines[i]] * 2))
        if not lines:
            break
    return b"".join(lines)


def cut_off(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    drop_bytes,
    swap_lines,
    swap_neighbours,
    change_lines,
    cut_off,
)


def mutants(sources: list[tuple[str, bytes]], count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(seed)
    for number in range(count):
        name, data = chance.choice(sources)
        mutate = chance.choice(MUTATIONS)
        yield f"{name} {mutate.__name__} {number}", mutate(data, chance)


def examples() -> list[tuple[str, bytes]]:
    return [
        (f"{rule.code} {name}", script.encode())
        for rule in all_rules()
        for name, script in {**rule.bad, **rule.good}.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("directories", nargs="*", type=Path, default=[Path(sysconfig.get_path("purelib"))])
    parser.add_argument("--mutants", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    signal.signal(signal.SIGPROF, _give_up)
    warnings.simplefilter("ignore")
    whole, damaged = Tally(LIMIT_S), Tally(LIMIT_S)
    sources = examples()
    for directory in args.directories:
        for path in sorted(directory.rglob("*.py")):
            data = path.read_bytes()
            whole.lint(data, str(path))
            if b".backward(" in data and len(data) < LARGEST_TO_MUTATE:
                sources.append((str(path), data))
    print(whole.told("files"), flush=True)
    for name, data in mutants(sources, args.mutants, args.seed):
        damaged.lint(data, name)
    print(damaged.told("mutants"), flush=True)
    for failure in (*whole.failures, *damaged.failures):
        print(failure)
    return 1 if whole.failures or damaged.failures else 0


def _give_up(signal_number: int, frame: FrameType | None) -> None:
    raise TookTooLong(f"still not read after {LIMIT_S} s")


if __name__ == "__main__":
    sys.exit(main())

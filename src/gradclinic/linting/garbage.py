"""When Python looks for garbage while files are read.

A tree and what is made of it live until their file is done: looking in between finds nothing, and most runs
are over before there is enough of it to matter. The command itself never asks Python to look (`cli.entry`).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MOST_WAITING = 1_000_000
"""Objects that may wait to be let go: some hundred megabytes."""


@contextmanager
def collecting_seldom() -> Iterator[None]:
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def collect_if_much() -> None:
    if gc.get_count()[0] > MOST_WAITING:
        gc.collect()

"""Many files: examined one after the other or side by side, put together into one diagnosis."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from gradclinic.config import Config
from gradclinic.facts import Observation, Source
from gradclinic.findings import Diagnosis, Summary
from gradclinic.findings.diagnosis import in_order, merge, strongest
from gradclinic.judged import judged
from gradclinic.linting.examine import Examined, examine
from gradclinic.linting.files import collect
from gradclinic.linting.garbage import collect_if_much, collecting_seldom
from gradclinic.linting.modules import look_anew

FILES_WORTH_A_PROCESS = 64
"""Below this, starting a second interpreter takes longer than reading the files."""


def lint(paths: Sequence[str], config: Config, jobs: int = 0) -> Diagnosis:
    """The diagnosis of the files that `paths` stand for; `jobs` processes, 0 for one per core.

    Of topics it is silent where no file shows anything to look at: `with_topics` adds them.
    """
    started = time.perf_counter()
    look_anew()
    files = collect(paths, config)
    interrupted: list[str] = []
    done: list[Examined] = []
    try:
        for examined in _examine_all(files, config, jobs):
            done.append(examined)
    except KeyboardInterrupt:
        interrupted.append(f"interrupted after {len(done)} of {len(files)} files")
    return Diagnosis(
        command="lint",
        target=" ".join(paths),
        findings=in_order(merge(chain.from_iterable(one.findings for one in done))),
        judged=strongest(chain.from_iterable(one.judged for one in done), lambda check: check.check),
        checklist=strongest(chain.from_iterable(one.checklist for one in done), lambda point: point.point),
        summary=Summary(
            files=sum(1 for one in done if not one.problem), elapsed_s=time.perf_counter() - started
        ),
        problems=(*(one.problem for one in done if one.problem), *interrupted),
    )


def with_topics(diagnosis: Diagnosis) -> Diagnosis:
    """What could be looked at, told as not seen where it is missing: that takes all rules to be loaded."""
    if diagnosis.judged:
        return diagnosis
    nothing = judged([Observation(Source.STATIC)], ())
    return replace(diagnosis, judged=nothing.topics, checklist=nothing.checklist)


def _examine_all(files: list[str], config: Config, jobs: int) -> Iterator[Examined]:
    """In the order of `files`, whichever process is done first."""
    workers = min(jobs or os.cpu_count() or 1, len(files) // FILES_WORTH_A_PROCESS)
    if workers < 2:
        beside = frozenset(files)
        with collecting_seldom():
            for file in files:
                yield examine(file, config, beside)
                collect_if_much()
        return
    import multiprocessing  # slow to import, and one file does not need it
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(workers, initializer=_begin_work) as pool:
        try:
            yield from pool.map(partial(_work, config=config), files, chunksize=16)
        except BaseException:
            # They ignore interrupts, and would wait for work for ever once this process has ended.
            for worker in multiprocessing.active_children():
                worker.terminate()
            pool.shutdown(cancel_futures=True)
            raise


def _begin_work() -> None:
    import signal  # slow to import, and only workers need it

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # interrupts are the parent's
    gc.disable()


def _work(file: str, config: Config) -> Examined:
    try:
        return examine(file, config, beside=None)
    finally:
        collect_if_much()

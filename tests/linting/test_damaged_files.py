"""Whatever a file holds, linting it ends: with findings, with none, or with what is wrong with it."""

from __future__ import annotations

import random

import pytest

from benchmarks.fuzz_lint import MUTATIONS, Tally, examples, mutants

EVERY = examples()


@pytest.mark.parametrize("seed", range(4))
def test_mutants_of_the_examples_raise_nothing(seed: int):
    tally = Tally()
    for name, data in mutants(EVERY, 75, seed):
        tally.lint(data, name)
    assert tally.failures == []
    assert sum(tally.ended.values()) == 75
    assert tally.ended["not Python"] < 75


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_a_mutation_changes_the_file(mutate):
    name, data = EVERY[0]
    assert any(mutate(data, random.Random(seed)) != data for seed in range(5)), name


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"x = " + b"(" * 5000 + b")" * 5000,
        b"x = " + b"-" * 20_000 + b"1",
        b"if a:\n" + b"".join(b" " * n + b"if a:\n" for n in range(1, 99)) + b" " * 99 + b"pass",
        b"loss.backward()" + b".a" * 3000,
        b"def f():\n    return f()\n\nclass A(A): pass\nA().step(A)\n",
        b"x = " + b" + ".join([b"loss.backward()"] * 3000),
        b"import torch\nfor _ in range():\n    torch.zeros().backward(len(), next(), sum(), zip(), map())\n",
    ],
    ids=["empty", "no text", "brackets", "signs", "blocks", "attributes", "itself", "sum", "nothing given"],
)
def test_odd_files_come_to_an_end(data: bytes):
    tally = Tally()
    tally.lint(data, "odd.py")
    assert tally.failures == []

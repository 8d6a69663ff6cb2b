"""Methods that are not called where they are written: kept under a name, or given to a function of Python."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

LOOP = """
import contextlib, functools, itertools, operator
from collections import deque

def train(model, head, loader):
    opts = [torch.optim.AdamW(model.parameters()), torch.optim.SGD(head.parameters(), lr=0.1)]
    first, second = opts
    {kept}
    for x, y in loader:
        {clear}
        F.cross_entropy(head(model(x)), y).backward(){mark}
        {step}
"""
STEP = "[opt.step() for opt in opts]"

CLEARING = {
    "partials": (
        "a = functools.partial(first.zero_grad); b = functools.partial(second.zero_grad)",
        "a(); b()",
    ),
    "of the class": ("", "list(map(torch.optim.Optimizer.zero_grad, opts))"),
    "a caller of methods": ("clear = operator.methodcaller('zero_grad')", "for opt in opts: clear(opt)"),
    "a caller at once": ("", "list(map(operator.methodcaller('zero_grad'), opts))"),
    "a lambda": ("", "list(map(lambda opt: opt.zero_grad(), opts))"),
    "a lambda for nothing": ("", "deque(map(lambda opt: opt.zero_grad(), opts), maxlen=0)"),
    "a fold": ("", "functools.reduce(lambda _, opt: opt.zero_grad(), opts, None)"),
    "a comprehension": ("", "[opt.zero_grad() for opt in opts]"),
    "methods in a list": ("clears = [opt.zero_grad for opt in opts]", "for clear in clears: clear()"),
    "lambdas in a list": (
        "clears = [lambda: first.zero_grad(), lambda: second.zero_grad()]",
        "for clear in clears: clear()",
    ),
    "two in a row": ("", "for opt in itertools.chain([first], [second]): opt.zero_grad()"),
    "on leaving": (
        "",
        "with contextlib.ExitStack() as s: s.callback(first.zero_grad); s.callback(second.zero_grad)",
    ),
    "by hand at once": (
        "",
        "torch._foreach_zero_([p.grad for m in (model, head) for p in m.parameters() if p.grad is not None])",
    ),
}


@pytest.mark.parametrize("way", CLEARING)
def test_they_clear_where_they_are_called(way: str) -> None:
    kept, clear = CLEARING[way]
    assert told(TORCH + LOOP.format(kept=kept or "pass", clear=clear, step=STEP, mark="")) == set()


STEPPING = [
    STEP,
    "list(map(lambda opt: opt.step(), opts))",
    "list(map(operator.methodcaller('step'), opts))",
    "list(map(torch.optim.Optimizer.step, opts))",
]


@pytest.mark.parametrize("step", STEPPING)
def test_they_step_where_they_are_called(step: str) -> None:
    right = LOOP.format(kept="pass", clear="[opt.zero_grad() for opt in opts]", step=step, mark="")
    assert told(TORCH + right) == set()
    wrong = TORCH + LOOP.format(kept="pass", clear="pass", step=step, mark="  # GC101")
    assert told(wrong) == marked(wrong)


SCALED = """
import functools
from project.states import State

def train(model, loader):
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler()
    {kept}
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        {unscale}
        nn.utils.clip_grad_norm_(model.parameters(), 1.0){mark}
        scaler.step(optimizer)
        scaler.update()
"""


@pytest.mark.parametrize(
    ("kept", "unscale"),
    [
        ("unscale = functools.partial(scaler.unscale_, optimizer)", "unscale()"),
        ("unscale = scaler.unscale_", "unscale(optimizer)"),
        ("ways = [lambda: scaler.unscale_(optimizer)]", "for way in ways: way()"),
        ("pass", "list(map(scaler.unscale_, [optimizer]))"),
        ("state = State(model=model, optimizer=optimizer, scaler=scaler)", "state.unscale()"),
    ],
)
def test_they_unscale_where_they_are_called(kept: str, unscale: str) -> None:
    assert told(TORCH + SCALED.format(kept=kept, unscale=unscale, mark="")) == set()
    never = TORCH + SCALED.format(kept="pass", unscale="pass", mark="  # GC501")
    assert told(never) == marked(never)

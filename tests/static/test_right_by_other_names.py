"""Loops that are right, of which a name does not say so: beside each the fault that must still be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.engine import judge
from gradclinic.linting.examine import examine
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

BACKWARD = """
from project import guarded

def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        {backward}
        optimizer.step(){mark}
"""


@pytest.mark.parametrize(
    "backward",
    [
        "bw = loss.backward; bw()",
        "go = loss.backward; go(retain_graph=False)",
        "guarded(loss.backward)",
        "guarded(call=loss.backward)",
        "acts = [loss.backward]; acts[0]()",
    ],
)
def test_a_backward_by_another_name_fills_the_gradients(backward: str) -> None:
    assert told(TORCH + BACKWARD.format(backward=backward, mark="")) == set()


@pytest.mark.parametrize("backward", ["go = loss.item; go()", "guarded(loss.item)"])
def test_what_is_no_backward_does_not(backward: str) -> None:
    source = TORCH + BACKWARD.format(backward=backward, mark="  # GC105")
    assert told(source) == marked(source)


def test_it_is_asked_for_its_order_too() -> None:
    late = BACKWARD.format(backward="bw = loss.backward", mark="  # GC105") + "        bw()\n"
    assert told(TORCH + late) == marked(TORCH + late)


CLEARING = """
from project import *

def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {before}
    for x, y in loader:
        {call}
        F.mse_loss(model(x), y).backward(){mark}
        optimizer.step()
"""


@pytest.mark.parametrize(
    "call",
    [
        "get_ready(optimizer)",
        "prepare(model)",
        "format_grads(model)",
        "setup_batch(model)",
        "set_up(optimizer)",
        "init_step(model)",
        "make_room(optimizer)",
    ],
)
def test_what_is_called_for_nothing_it_gives_may_clear(call: str) -> None:
    assert told(TORCH + CLEARING.format(call=call, before="pass", mark="")) == set()


@pytest.mark.parametrize(
    ("before", "call"),
    [
        ("pass", "print(get_lr(optimizer))"),
        ("pass", "rate = get_rate(optimizer)"),
        ("pass", "log_grads(model)"),
        ("pass", "save(model, optimizer)"),
        ("pass", "make_samples(model, x)"),
        ("pass", "create_checkpoint(model, optimizer)"),
        ("pass", "get_accuracy(model, val)"),
        ("pass", "get_current_rate(optimizer)"),
        ("pass", "init_hidden(model, 32)"),
        ("pass", "setup_timer(model)"),
        ("pass", "prepare_data(model)"),
        ("pass", "prepare_snapshot(model, optimizer)"),
        ("i = 0", "i += 1\n        if i % 10 == 0: prepare(model)"),
        ("prepare(model)", "pass"),
        ("init_weights(model)", "pass"),
    ],
)
def test_what_is_asked_for_or_done_once_does_not(before: str, call: str) -> None:
    source = TORCH + CLEARING.format(call=call, before=before, mark="  # GC101")
    assert told(source) == marked(source)


LEARNED = """
def fit(model, loader, params, cfg):
    optimizer = torch.optim.SGD({held}, lr=cfg["lr"])
    for x, y in loader:
        optimizer.zero_grad()
        loss = {factor} * F.mse_loss(model(x), y).detach(){mark}
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("held", "factor"),
    [
        ("params.values()", 'params["alpha"]'),
        ('[params["alpha"], *model.parameters()]', 'params["alpha"]'),
        ("model.parameters()", 'params["alpha"].exp()'),
        ("model.parameters()", 'params["alpha"].sigmoid()'),
    ],
)
def test_what_is_trained_is_no_setting(held: str, factor: str) -> None:
    assert told(TORCH + LEARNED.format(held=held, factor=factor, mark="")) == set()


@pytest.mark.parametrize(("held", "factor"), [("model.parameters()", 'params["alpha"]')])
def test_a_setting_brings_no_graph(held: str, factor: str) -> None:
    source = TORCH + LEARNED.format(held=held, factor=factor, mark="  # GC201")
    assert told(source) == marked(source)


SCALED = """
from library import {name}

def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.mse_loss(model(x), y)).backward()
        {name}(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
"""


@pytest.mark.parametrize(
    ("name", "codes"), [("maybe_unscale", set()), ("amp_finish", set()), ("on_before_clip", {"GC501"})]
)
def test_a_library_may_know_the_scaler_if_it_says_so(name: str, codes: set[str], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    file = tmp_path / "train.py"
    file.write_text(TORCH + SCALED.format(name=name))
    assert {
        finding.code for finding in examine(str(file), Config(), frozenset([str(file)])).findings
    } == codes


CASTS = """
def train(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", enabled={outer}):
            h = model(x)
            with torch.autocast("cuda", enabled={inner}):
                F.mse_loss(h, y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("outer", "inner", "codes"),
    [
        ("True", "False", set()),
        ("args.amp", "False", set()),
        ("False", "True", {"GC509"}),
        ("args.amp", "True", {"GC509"}),
    ],
)
def test_of_two_casts_the_inner_one_decides(outer: str, inner: str, codes: set[str]) -> None:
    source = TORCH + CASTS.format(outer=outer, inner=inner)
    assert {finding.code for finding in judge([observe_source(source, "train.py")])} == codes

"""Engines of Ignite: what a file gives them to call, in the order in which they call it."""

from __future__ import annotations

import pytest

from tests.rules.scripts import codes_by_lint
from tests.static.reading import TORCH, marked, only_tape, spelled, told

ENGINE = """
from ignite.engine import Engine, Events

def make_trainer(model, optimizer):
    def update(engine, batch):
        x, y = batch
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return Engine(update)

def run(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    trainer = make_trainer(model, optimizer)

    @trainer.on(Events.EPOCH_STARTED)
    def advance(engine):
        schedule.step()  # GC112

    trainer.run(loader, max_epochs=epochs)
"""
BY_A_CALL = ENGINE.replace("    @trainer.on(Events.EPOCH_STARTED)\n", "").replace(
    "    trainer.run", "    trainer.add_event_handler(Events.EPOCH_STARTED, advance)\n    trainer.run"
)


@pytest.mark.parametrize("source", [ENGINE, BY_A_CALL])
def test_a_schedule_that_leads_the_epoch_is_told(source: str) -> None:
    assert told(TORCH + source) == marked(TORCH + source)


@pytest.mark.parametrize("source", [ENGINE, BY_A_CALL])
@pytest.mark.parametrize(
    "event",
    [
        "Events.EPOCH_COMPLETED",
        "Events.ITERATION_COMPLETED",
        "Events.EPOCH_STARTED(every=2)",
        "Events.EPOCH_STARTED | Events.COMPLETED",
        "event",
    ],
)
def test_one_that_comes_after_it_or_at_unknown_times_is_not(source: str, event: str) -> None:
    assert codes_by_lint(TORCH + source.replace("Events.EPOCH_STARTED", event)) == []


def test_a_handler_that_clears_is_called_before_the_update() -> None:
    source = ENGINE.replace("        optimizer.zero_grad()\n", "").replace("EPOCH_", "ITERATION_")
    source = source.replace("    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)\n", "")
    assert {code for code, _ in told(TORCH + source.replace("schedule.step()", "print()"))} == {"GC101"}
    assert told(TORCH + source.replace("schedule.step()", "optimizer.zero_grad()")) == set()


def test_an_engine_that_others_were_given_may_do_more() -> None:
    given = ENGINE.replace("    trainer.run", "    prepare(trainer, optimizer)\n    trainer.run")
    assert codes_by_lint(TORCH + given) == []


def test_the_order_is_that_of_the_engine() -> None:
    (first, *_) = spelled(only_tape(TORCH + ENGINE)).split(" epoch-end ")
    assert first.startswith("schedule epoch batch zero_grad backward step batch")

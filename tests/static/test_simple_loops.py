"""Loops as they stand in a first script: the tape is what a run of a few steps would leave."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradclinic.facts import EventKind
from gradclinic.static.conditions import name_of
from gradclinic.static.values import Unknown
from tests.rules.scripts import codes_by_lint
from tests.static.reading import only_tape, spelled, tapes

PLAIN = """
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
"""


def test_each_iteration_repeats_in_source_order_with_exact_lines():
    tape = only_tape(PLAIN)
    assert spelled(tape) == "epoch " + "batch zero_grad backward clip step " * 4 + "epoch-end"
    lines = [event.where.line for event in tape.events if event.kind is EventKind.STEP]
    assert lines == [12, 12, 12, 12]


def test_a_script_is_a_complete_tape_and_its_optimizer_knows_its_model():
    tape = only_tape(PLAIN)
    assert tape.complete
    (optimizer,) = tape.optimizers
    assert tape.actors[optimizer].type == "SGD"
    assert tape.actors[optimizer].name == "optimizer"
    assert tape.actors[optimizer].of


def test_a_function_that_nobody_calls_is_read_with_its_parameters_inferred():
    tape = only_tape(
        """
        def train(model, optimizer, criterion, loader):
            for x, y in loader:
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        """
    )
    assert spelled(tape) == "epoch " + "batch backward step zero_grad " * 4 + "epoch-end"
    assert not tape.complete
    assert tape.events[0].where.function == "train"


def test_nested_epochs_walk_the_data_twice():
    tape = only_tape(
        """
        import torch
        optimizer = torch.optim.Adam(model.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
        for epoch in range(100):
            for batch in loader:
                loss = model(batch).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            scheduler.step()
        """
    )
    one_pass = "epoch " + "batch zero_grad backward step " * 4 + "epoch-end schedule "
    assert spelled(tape) == (one_pass * 2).strip()


def test_the_same_condition_is_answered_the_same_way_all_along_a_path():
    (paths,) = tapes(
        """
        def train(model, optimizer, loader, args):
            for x in loader:
                optimizer.zero_grad()
                if args.half:
                    model(x).mean().backward()
                else:
                    model(x).sum().backward()
                if not args.half:
                    optimizer.step()
        """
    )
    assert {spelled(tape) for tape in paths} == {
        "epoch " + "batch zero_grad backward " * 4 + "epoch-end",
        "epoch " + "batch zero_grad backward step " * 4 + "epoch-end",
    }


def test_a_loop_over_losses_is_no_accumulation():
    tape = only_tape(
        """
        def train(model, optimizer, loader):
            for x in loader:
                optimizer.zero_grad()
                losses = model(x)
                for loss in losses:
                    loss.backward()
                optimizer.step()
        """
    )
    assert spelled(tape).startswith("epoch batch zero_grad backward")
    assert "batch backward" not in spelled(tape)


def test_clearing_by_hand_is_clearing():
    tape = only_tape(
        """
        import torch
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in loader:
            for p in model.parameters():
                p.grad = None
            model(x).mean().backward()
            optimizer.step()
        """
    )
    assert spelled(tape) == "epoch " + "batch zero_grad backward step " * 4 + "epoch-end"


def test_names_of_sums_of_sums_stay_short_and_their_own() -> None:
    """As in conjugate gradients, where every value is made of all before it."""
    one, other = Unknown("x"), Unknown("y")
    for _ in range(12):
        one, other = (Unknown(f"({name_of(value)} + {name_of(value)})") for value in (one, other))
    assert len(name_of(one)) < 500
    assert name_of(one) != name_of(other)


def test_print_statements_of_old_sources_are_passed_over():
    old = """
    import torch
    for x, y in loader:
        print "loss", loss
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    """
    assert spelled(only_tape(old)).split()[1:5] == ["batch", "zero_grad", "backward", "step"]


def test_a_model_given_to_the_method_of_another_is_reached_by_its_outcome():
    source = """
import torch
from torch import nn
from worlds import Env

policy, world = nn.Linear(4, 1), nn.Linear(4, 4)
optimizer = torch.optim.Adam(policy.parameters())
env = Env(world_model=world)
for step in range(20):
    optimizer.zero_grad()
    loss = world(env.rollout(30, policy=policy)).mean()
    loss.backward()
    optimizer.step()
"""
    assert codes_by_lint(source) == []


def test_a_backward_that_seems_to_reach_nobody_is_no_missing_one():
    source = """
import torch
from torch import nn

adapter, unet = nn.Linear(4, 1), nn.Linear(4, 4)
optimizer = torch.optim.Adam(adapter.parameters())
for batch in loader:
    optimizer.zero_grad()
    hints = run_through(batch)
    loss = unet(hints).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(adapter.parameters(), 1.0)
    optimizer.step()
"""
    assert codes_by_lint(source) == []


def test_a_training_step_gives_the_loss_and_leaves_the_update_to_its_caller():
    fit = """
    import torch

    def fit(epochs, max_lr, model, train_loader):
        optimizer = torch.optim.Adam(model.parameters(), max_lr)
        sched = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr, epochs=epochs, steps_per_epoch=len(train_loader)
        )
        for epoch in range(epochs):
            for batch in train_loader:
                loss = model.training_step(batch)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                {per_batch}
            {per_epoch}
    """
    assert codes_by_lint(dedent(fit.format(per_batch="sched.step()", per_epoch="pass"))) == []
    assert codes_by_lint(dedent(fit.format(per_batch="pass", per_epoch="sched.step()"))) == ["GC113"]


def test_what_is_only_printed_every_so_often_makes_no_window():
    """The loop is gone through no more often for it; where a step depends on it, twice around and a rest."""
    told = PLAIN.replace("for x, y in", "for i, (x, y) in").replace(" loader:", " enumerate(loader):")
    printed = told + "        if i % 100 == 0:\n            print(loss)\n"
    assert spelled(only_tape(printed)) == spelled(only_tape(PLAIN))
    stepped = told.replace("optimizer.step()", "if i % 4 == 3:\n            optimizer.step()")
    assert spelled(only_tape(stepped)).count("batch") > 8


def test_a_round_that_is_passed_over_hides_nothing():
    """A schedule that nobody advances shows after a few updates, though the first batch brings none."""
    script = dedent(
        """
        import torch
        from torch import nn

        model = nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
        before = None
        for x in loader:
            if before is not None:
                optimizer.zero_grad()
                nn.functional.mse_loss(model(x), before).backward()
                optimizer.step()
                ADVANCE
            before = x
        """
    )
    assert codes_by_lint(script.replace("ADVANCE", "pass")) == ["GC114"]
    assert codes_by_lint(script.replace("ADVANCE", "schedule.step()")) == []


@pytest.mark.parametrize("says", ["", 'print("enough"); '])
def test_whether_a_loop_is_left_at_its_very_end_makes_no_path_of_its_own(says: str):
    assert spelled(only_tape(f"{PLAIN}        if args.dry_run: {says}break\n")) == spelled(only_tape(PLAIN))


@pytest.mark.parametrize("ending", ["optimizer.step(); break", "break\n        schedule.step()"])
def test_a_break_before_or_beside_something_that_happens_is_walked_both_ways(ending: str):
    built = PLAIN.replace("for x", "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)\n    for x")
    ((one, other),) = tapes(f"{built}        if args.dry_run: {ending}\n")
    assert spelled(one) != spelled(other)


ONE_PASS_EACH = """
    import torch
    from torch import nn

    def clear(optimizer):
        optimizer.zero_grad()
        return stop()

    def train(model, optimizer, loader, epochs):
        for epoch in range(epochs):
            {before}
            for i, (x, y) in enumerate(loader):
                nn.functional.mse_loss(model(x), y).backward()
                {inside}
                if {asked}:
                    break
            {after}
"""


@pytest.mark.parametrize(
    ("before", "inside", "asked", "after"),
    [
        ("pass", "optimizer.step()", "clear(optimizer)", "pass"),
        ("optimizer.zero_grad()", "pass", "i == 0", "optimizer.step()"),
        ("optimizer.zero_grad()", "pass", "True", "optimizer.step()"),
    ],
    ids=["the question acts", "after the first batch", "always"],
)
def test_a_break_that_is_sure_or_whose_question_acts_is_walked(
    before: str, inside: str, asked: str, after: str
) -> None:
    source = ONE_PASS_EACH.format(before=before, inside=inside, asked=asked, after=after)
    assert codes_by_lint(dedent(source)) == []

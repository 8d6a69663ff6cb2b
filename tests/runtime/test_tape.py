"""What the tape says of a loop that ran."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from gradclinic.engine import judge
from gradclinic.facts import ActorKind, EventKind
from gradclinic.runtime import Recording
from tests.runtime.conftest import Record, order


def test_a_plain_loop_is_told_in_order_with_names_and_lines(record: Record) -> None:
    def train() -> None:
        model = nn.Linear(4, 1)
        my_optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            my_optimizer.zero_grad()
            functional.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 1)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            my_optimizer.step()

    tape = record(train)

    assert order(tape) == "zero_grad backward clip step zero_grad backward clip step"
    (actor,) = tape.actors[tape.optimizers[0]], *()
    assert (actor.name, actor.type) == ("my_optimizer", "SGD")
    first = train.__code__.co_firstlineno
    assert actor.built is not None
    assert actor.built.line == first + 2
    lines = [event.where.line - first for event in tape.events if event.kind is not EventKind.BUILD]
    assert lines[:6] == [4, 5, 5, 5, 6, 7]
    assert {event.where.path for event in tape.events} == {"tests/runtime/test_tape.py"}
    assert tape.events[0].where.function.endswith("train")


def test_an_optimizer_made_by_a_helper_is_called_what_the_caller_calls_it(record: Record) -> None:
    class Trainer:
        def __init__(self) -> None:
            self.model = nn.Linear(2, 1)
            self.opt = make_optimizer(self.model)

    def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters())

    def train() -> None:
        trainer = Trainer()
        trainer.model(torch.ones(1, 2)).sum().backward()
        trainer.opt.step()

    tape = record(train)

    assert [tape.name(optimizer) for optimizer in tape.optimizers] == ["self.opt"]


@pytest.mark.parametrize(
    ("objective", "scaled"),
    [
        (lambda x: functional.mse_loss(x, x * 0), False),
        (lambda x: functional.mse_loss(x, x * 0) / 4, True),
        (lambda x: functional.mse_loss(x, x * 0) * 0.25, True),
        (lambda x: functional.mse_loss(x, x * 0, reduction="sum"), None),
        (lambda x: functional.cross_entropy(x, x.argmax(1), label_smoothing=0.1), False),
        (lambda x: functional.cross_entropy(x, x.argmax(1)) / 4 + x.pow(2).mean() / 4, True),
        (lambda x: functional.cross_entropy(x, x.argmax(1)) + x.pow(2).mean(), False),
        (lambda x: -x.mean(), False),
        (lambda x: x.exp().norm(), None),
    ],
)
def test_a_backward_knows_whether_its_loss_was_divided(record: Record, objective, scaled) -> None:  # type: ignore[no-untyped-def]
    model = nn.Linear(3, 5)
    tape = record(lambda: objective(model(torch.randn(4, 3))).backward())

    (backward,) = tape.of_kind(EventKind.BACKWARD)
    assert backward.attrs["scaled"] is scaled


def test_a_discriminator_loss_concerns_the_generator_only_when_it_reaches_it(record: Record) -> None:
    def train() -> None:
        generator, discriminator = nn.Linear(2, 3), nn.Linear(3, 1)
        opt_g = torch.optim.Adam(generator.parameters())
        opt_d = torch.optim.Adam(discriminator.parameters())
        fake = generator(torch.randn(4, 2))
        discriminator(fake.detach()).mean().backward()
        opt_d.step()
        discriminator(fake).mean().backward()
        opt_g.step()

    tape = record(train)

    concerned = [{tape.name(o) for o in e.optimizers or ()} for e in tape.of_kind(EventKind.BACKWARD)]
    assert concerned == [{"opt_d"}, {"opt_g", "opt_d"}]


def test_autograd_grad_deposits_nothing_and_is_no_backward(record: Record) -> None:
    def train() -> None:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(4, 2, requires_grad=True)
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        slope.pow(2).mean().backward()
        optimizer.step()

    assert order(record(train)) == "backward step"


def test_a_closure_runs_inside_its_step_and_the_step_comes_last(record: Record) -> None:
    def train() -> None:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = model(torch.ones(4, 2)).pow(2).mean()
            loss.backward()
            return loss

        optimizer.step(closure)  # type: ignore[arg-type]

    tape = record(train)

    assert order(tape).endswith("zero_grad backward step")
    assert order(tape).count("step") == 1
    assert all(event.attrs["in_step"] for event in tape.of_kind(EventKind.BACKWARD))


def test_gradients_filled_by_a_checkpointed_part_are_seen(record: Record) -> None:
    def train() -> None:
        hidden = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(hidden.parameters(), lr=0.1)
        x = torch.randn(4, 2, requires_grad=True)
        torch.utils.checkpoint.checkpoint(hidden, x, use_reentrant=True).sum().backward()
        optimizer.step()

    tape = record(train)

    assert order(tape) == "backward step"
    (backward,) = tape.of_kind(EventKind.BACKWARD)
    assert backward.optimizers == frozenset(tape.optimizers)


def test_an_optimizer_around_another_takes_one_step(record: Record) -> None:
    class Lookahead(torch.optim.Optimizer):
        def __init__(self, inner: torch.optim.Optimizer) -> None:
            super().__init__(inner.param_groups, {})
            self.inner = inner

        def step(self, closure: object = None) -> None:  # type: ignore[override]
            self.inner.step()

    def train() -> None:
        model = nn.Linear(2, 1)
        outer = Lookahead(torch.optim.SGD(model.parameters(), lr=0.1))
        model(torch.ones(1, 2)).sum().backward()
        outer.step()

    tape = record(train)

    (step,) = tape.of_kind(EventKind.STEP)
    assert step.optimizers == frozenset(tape.optimizers)
    assert len(tape.optimizers) == 2


def test_a_pass_over_a_loader_has_a_beginning_batches_and_an_end_unless_it_breaks(record: Record) -> None:
    def train() -> None:
        loader = DataLoader(TensorDataset(torch.randn(6, 2)), batch_size=2)
        weight = nn.Parameter(torch.ones(2))
        for (batch,) in loader:
            (batch @ weight).mean().backward()
        for _ in loader:
            break

    tape = record(train)

    beat = frozenset({EventKind.EPOCH_BEGIN, EventKind.BATCH, EventKind.EPOCH_END})
    assert order(tape, of=beat) == "epoch batch batch batch epoch-end epoch batch"


def test_a_forward_is_fresh_when_the_data_is(record: Record) -> None:
    def train() -> None:
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        x = torch.randn(4, 2)
        for data in (x, x, torch.randn(4, 2)):
            model(data).mean().backward()

    tape = record(train)

    assert [event.attrs["fresh"] for event in tape.of_kind(EventKind.FORWARD)] == [True, False, True]
    assert [tape.name(event.actor) for event in tape.of_kind(EventKind.FORWARD)] == ["model"] * 3


def test_a_loss_tells_what_it_averages_over(record: Record) -> None:
    def train() -> None:
        logits = torch.zeros(6, 4, requires_grad=True)
        target = torch.tensor([0, 1, -100, -100, 2, 3])
        nn.CrossEntropyLoss()(logits, target).backward()
        functional.mse_loss(logits, torch.zeros(6, 4), reduction="sum").backward()

    first, second = record(train).of_kind(EventKind.LOSS)

    assert (first.attrs["reduction"], first.attrs["valid"]) == ("mean", 4)
    assert first.attrs["value"] == pytest.approx(torch.log(torch.tensor(4.0)).item())
    assert (second.attrs["reduction"], second.attrs["valid"]) == ("sum", 24)


def test_modes_and_saves_are_noted(record: Record) -> None:
    def train() -> None:
        net = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
        net.eval()
        net.train()
        net(torch.ones(1, 2)).sum().backward()
        torch.save({"model": net.state_dict(), "epoch": 3}, io.BytesIO())

    tape = record(train)

    modes = [(tape.name(e.actor), e.attrs["training"]) for e in tape.of_kind(EventKind.MODE)]
    assert modes == [("net", False), ("net", True)]
    (save,) = tape.of_kind(EventKind.SAVE)
    assert save.attrs["keys"] == ("model", "epoch")
    assert [a.name for a in tape.actors.values() if a.kind is ActorKind.MODEL] == ["net"]


def test_a_loss_that_torch_itself_divides_by_a_number_is_told(record: Record) -> None:
    def train() -> None:
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        soft = torch.full((8, 3), 1 / 3)
        functional.cross_entropy(model(torch.randn(8, 4)), soft).backward()
        optimizer.step()

    assert order(record(train)) == "backward step"


AGENT = """
import torch
from torch import nn

def learn():
    actor, critic = nn.Linear(3, 2), nn.Linear(5, 1)
    actor_optimizer = torch.optim.Adam(actor.parameters())
    critic_optimizer = torch.optim.Adam(critic.parameters())
    for _ in range(6):
        state, action, value = torch.randn(8, 3), torch.randn(8, 2), torch.randn(8, 1)
        critic_optimizer.zero_grad()
        nn.functional.mse_loss(critic(torch.cat([state, action], 1)), value).backward()
        critic_optimizer.step()
        actor_optimizer.zero_grad()
        (-critic(torch.cat([state, actor(state)], 1)).mean()).backward()
        actor_optimizer.step()
"""


def test_a_line_behind_which_a_library_trains_two_models_is_not_one_call_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "agents_of_a_library.py").write_text(AGENT)
    monkeypatch.syspath_prepend(library)
    import agents_of_a_library  # type: ignore[import-not-found]

    with Recording() as recording:
        agents_of_a_library.learn()
    del sys.modules["agents_of_a_library"]

    # The actor's loss fills the critic's gradients too, which are cleared: no window was lost.
    assert judge([recording.observation()]) == ()

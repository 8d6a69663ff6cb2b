"""Training that goes on in eval mode, because nobody called train() after an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradclinic.facts import Evaluation, Event, EventKind, Location, ModeOfTraining, Tape, surely
from gradclinic.static.caring import layers_of, minds
from gradclinic.static.recorder import HELD_BY

NEW_DATA = (EventKind.BATCH, EventKind.EPOCH_BEGIN)
Place = tuple[Location, Location | str | None, str | None]
"""Where something happens to a model, the eval() it is under or the data it is gone over with, for a function
may train and evaluate, and which model it is: what is loaded in the end is evaluated by the same function."""
Verdicts = dict[Place, "ModeOfTraining | Evaluation | None"]
"""For each place of interest on one path: the fact, or None where this path speaks against it."""


def trained_in_eval(tape: Tape) -> Verdicts:
    """For each eval() whether a training goes on in the mode that it sets."""
    verdicts: Verdicts = {}
    for mode in tape.of_kind(EventKind.MODE):
        if mode.attrs["training"] is not False:
            continue
        trained = next(_training_forwards(tape, mode), None)
        if trained is None or _trained_so_before(tape, mode, trained):
            continue
        if not _forgotten(tape, mode, trained):
            verdicts.setdefault((mode.where, None, mode.actor), None)
            continue
        if not _evaluated_between(tape, mode, trained):
            trained = _comes_back(tape, mode)
        if trained is not None:
            layers = layers_of(trained) or ()
            verdicts[mode.where, None, mode.actor] = ModeOfTraining(
                mode.actor or "model", None, None, layers, trained.where, mode.where
            )
    return verdicts


def _trained_so_before(tape: Tape, mode: Event, trained: Event) -> bool:
    """Whether it was trained in eval mode before that eval() was ever called: as who loads it leaves it."""
    for event in tape.events[: mode.index]:
        if event.kind is EventKind.MODE and event.where == mode.where and event.actor == mode.actor:
            return False
        if event.kind is EventKind.FORWARD and event.where == trained.where and event.actor == trained.actor:
            return event.attrs["training"] is False
    return False


def _forgotten(tape: Tape, mode: Event, trained: Event) -> bool:
    """Whether the model is still in the mode that was set there."""
    return (
        trained.attrs["training"] is False
        and trained.attrs.get("set_at") == mode.where
        and minds(trained)
        and not set_by_another_name(tape, mode.index, trained, training=True)
    )


def _comes_back(tape: Tape, mode: Event) -> Event | None:
    """The forward that a loop comes back to, and that was in train mode before eval() was called for another
    one further down: `encoder.eval(); extra = encoder(made)`."""
    before = {
        event.where
        for event in tape.events[: mode.index]
        if event.kind is EventKind.FORWARD
        and event.actor == mode.actor
        and event.attrs["training"] is not False
        and event.where.function == mode.where.function
        and event.where.line < mode.where.line
    }
    served = False
    for event in tape.events[mode.index + 1 :]:
        if event.kind is EventKind.FORWARD and event.actor == mode.actor and event.where in before:
            return event if served and _forgotten(tape, mode, event) and is_trained(tape, event) else None
        served |= event.kind is EventKind.FORWARD and event.attrs.get("set_at") == mode.where
    return None


def set_by_another_name(tape: Tape, since: int, forward: Event, *, training: bool) -> bool:
    """Whether train() or eval() was called meanwhile on what is never called itself: `self.net_pointer`, or
    whatever holds the model."""
    called = {event.actor for event in tape.of_kind(EventKind.FORWARD)}
    return any(
        event.kind is EventKind.MODE
        and event.actor not in called
        and event.attrs["training"] is not (not training)
        for event in tape.events[since : forward.index]
    )


def _training_forwards(tape: Tape, mode: Event) -> Iterator[Event]:
    """Forwards of the model after `mode` that a backward and a step of its optimizer follow."""
    after = tape.events[mode.index + 1 :]
    ends = max((e.index for e in after if e.kind in (EventKind.STEP, EventKind.OPAQUE)), default=0)
    for position, event in enumerate(after):
        if event.kind is EventKind.FORWARD and event.actor == mode.actor and event.attrs["graph"]:
            following = tuple(until_next(after[position + 1 :], event))
            aside = event.attrs.get("sweep") and any(
                e.kind is EventKind.FORWARD and e.actor == event.actor and not e.attrs.get("sweep")
                for e in following
            )
            trains = event.index < ends and (is_trained(tape, event) or _told_to_train(tape, event))
            if any(e.kind is EventKind.BACKWARD for e in following) and not aside and trains:
                yield event


def until_next(events: Iterable[Event], forward: Event) -> Iterator[Event]:
    """What follows a forward before new data comes."""
    for event in events:
        if event.kind in NEW_DATA or (event.kind is EventKind.MODE and event.actor == forward.actor):
            return
        yield event


def is_trained(tape: Tape, forward: Event) -> bool:
    """Whether an optimizer that steps holds this very model, and not only perhaps."""
    for step in tape.of_kind(EventKind.STEP):
        optimizer = step.actor
        if optimizer in forward.attrs.get(HELD_BY, ()):
            return True
        if optimizer is None or not surely(forward, tape, optimizer):
            continue
        actor = tape.actors[optimizer]
        if actor.of or (_only_model(tape, forward) and not actor.attrs.get("tensors")):
            return True
    return False


def _told_to_train(tape: Tape, forward: Event) -> bool:
    """Whether train() was called on it and optimizers step, though it is not known which of them holds it."""
    return (
        forward.optimizers is None
        and EventKind.STEP in tape.kinds
        and any(
            event.actor == forward.actor and event.attrs["training"] is True
            for event in tape.of_kind(EventKind.MODE)
        )
    )


def _only_model(tape: Tape, forward: Event) -> bool:
    """But for parts of it."""
    return all(
        event.actor == forward.actor or str(event.actor).startswith(f"{forward.actor}.")
        for event in tape.of_kind(EventKind.FORWARD)
        if event.attrs["graph"]
    )


def _evaluated_between(tape: Tape, mode: Event, trained: Event) -> bool:
    """Whether eval() served an evaluation: a forward elsewhere or without gradients, in its own loop or with
    new data after it."""
    data = max(
        (e.index for e in tape.events[mode.index : trained.index] if e.kind in NEW_DATA), default=mode.index
    )
    return any(
        event.kind is EventKind.FORWARD
        and event.actor == mode.actor
        and (event.where != trained.where or not event.attrs["graph"])
        and (event.index < data or event.attrs.get("sweep") or _serves(mode, event, trained))
        for event in tape.events[mode.index : trained.index]
    )


def _serves(mode: Event, forward: Event, trained: Event) -> bool:
    """Whether a function by itself calls eval() for a forward without gradients: `act(state)`."""
    own = mode.where.function
    return not forward.attrs["graph"] and forward.where.function == own != trained.where.function

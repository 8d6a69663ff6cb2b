"""From the paths of one root to facts about modes: in which one a model is trained and evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile

from gradclinic.facts import Evaluation, Event, EventKind, Location, ModeOfTraining, Tape
from gradclinic.static import words
from gradclinic.static.between_updates import between_updates, follows_an_update
from gradclinic.static.caring import differentiates, layers_around, layers_of
from gradclinic.static.elsewhere import class_elsewhere
from gradclinic.static.left_in_eval import (
    NEW_DATA,
    Place,
    Verdicts,
    is_trained,
    set_by_another_name,
    trained_in_eval,
    until_next,
)
from gradclinic.static.phases import held_out_forwards
from gradclinic.static.project_words import never_said

_SETS_EVAL = re.compile(
    rb"\beval(?:uating|_mode)?\b|\.training\b"
    rb"|\.train\((?!\s*(?:True|(?:self\.|args\.)?(?!is_)\w*(?:epoch|loader|dataset)s?\b[\w\s,.]*)?\s*\))"
)
"""Whatever may put a model into eval mode: `train(epoch)` and `train(loader)` are no torch's."""
Trained = frozenset[tuple[str | None, Location]]


def modes_of_training(paths: Iterable[Tape]) -> list[ModeOfTraining | Evaluation]:
    """Training that goes on in the eval mode of the evaluation before it."""
    return _agreed([trained_in_eval(tape) for tape in paths])


def evaluations(paths: Iterable[Tape], beside: Iterable[Tape] = ()) -> list[ModeOfTraining | Evaluation]:
    """What the paths show; of those beside them, on which nothing is trained, only what is new."""
    tapes = list(paths)
    # One loop may train on one path and evaluate on another: `for split in splits`.
    trained = frozenset(place for tape in tapes for place in _trained(tape))
    verdicts = [_evaluated(tape, trained) for tape in tapes]
    passed = {event.where for tape in tapes for event in tape.of_kind(EventKind.FORWARD)}
    for tape in beside:
        shown = _evaluated(tape, trained).items()
        verdicts.append({place: fact for place, fact in shown if place[0] not in passed})
    return _first_of_each(_agreed(verdicts))


def measured_only(measuring: Iterable[Tape], training: Iterable[Tape]) -> list[ModeOfTraining | Evaluation]:
    """What functions that measure and train nothing show of the loop that others of the file train by:
    `def test(self): self.run(self.test_data, train=False)`."""
    trained = frozenset(
        (event.actor, event.where)
        for tape in training
        for event in tape.of_kind(EventKind.FORWARD)
        if _goes_backward(tape, event)
    )
    verdicts = [_measured_only(tape, trained) for tape in measuring if EventKind.OPAQUE not in tape.kinds]
    return _first_of_each(_agreed(verdicts))


def _measured_only(tape: Tape, trained: Trained) -> Verdicts:
    """Of their graphs; of the mode, which whoever calls them may set, only where no file of the project calls
    eval() at all."""
    places = [(event.actor, event.where) for event in tape.of_kind(EventKind.FORWARD)]
    verdicts: Verdicts = {}
    for event in tape.of_kind(EventKind.FORWARD):
        if (event.actor, event.where) not in trained or places.count((event.actor, event.where)) == 1:
            continue
        useless = event.attrs["graph"] and "doubtful" not in event.attrs and not differentiates(event)
        evidence = "a loop that trains elsewhere, and nothing here"
        at = _told_at(event, trained)
        training = _in_train_mode(tape, event) and never_said(at.path, _SETS_EVAL)
        layers = (layers_of(event) or layers_around(event) or ()) if training else ()
        verdicts[at, None, event.actor] = (
            Evaluation(
                event.actor or "model", at, None, training, useless, layers, evidence, called_in_sight=False
            )
            if useless or layers
            else None
        )
    return verdicts


def _first_of_each(facts: list[ModeOfTraining | Evaluation]) -> list[ModeOfTraining | Evaluation]:
    """One evaluation may call its model at several places: the graphs begin at the first, and pile up in its
    loops."""
    first: dict[tuple[object, ...], ModeOfTraining | Evaluation] = {}
    seen = [fact for fact in facts if isinstance(fact, Evaluation)]
    for fact in sorted(seen, key=lambda one: one.at_once):
        begun = fact.set_at or (fact.where.path, fact.where.function)
        same = (fact.model, begun) if fact.builds_graph else (fact.where,)
        first.setdefault(same, fact)
    return list(first.values())


def evaluates_by_flag(tape: Tape) -> bool:
    """Whether it shows what may be the evaluation of a loop that trains on another path."""
    return EventKind.BACKWARD not in tape.kinds and any(
        "plainly" in event.attrs for event in tape.of_kind(EventKind.FORWARD)
    )


def _agreed(verdicts: list[Verdicts]) -> list[ModeOfTraining | Evaluation]:
    """What some path shows and no path contradicts."""
    found: Verdicts = {}
    for path in verdicts:
        for where, fact in path.items():
            known = found.get(where, fact)
            better = isinstance(known, Evaluation) and not known.called_in_sight
            found[where] = fact if fact is None or better else known
    return [fact for fact in found.values() if fact is not None]


def _evaluated(tape: Tape, trained: Trained) -> Verdicts:
    verdicts: Verdicts = {}
    trains = EventKind.STEP in tape.kinds and EventKind.BACKWARD in tape.kinds
    held_out = held_out_forwards(tape) if trains else {}
    here = frozenset(_trained(tape)) if trains else None
    for event in tape.of_kind(EventKind.FORWARD):
        fact = _evaluation(tape, event, trained, here)
        by_flag = _by_flag(event, trained)
        set_at = event.attrs.get("set_at") if by_flag else None
        place: Place = (_told_at(event, trained), set_at, event.actor)
        if event.index in held_out and set_at is None:
            fact, place = _of_a_phase(tape, event), (event.where, held_out[event.index], event.actor)
        verdicts[place] = None if fact is None else verdicts.get(place, fact)
    return verdicts


def _evaluation(tape: Tape, event: Event, trained: Trained, here: Trained | None) -> Evaluation | None:
    """`trained` is what any path trains, `here` what this one does; None where it trains nothing."""
    attrs, trains, at_once = event.attrs, here is not None, False
    if here is not None and not (
        is_trained(tape, event) or (attrs["graph"] and _trained_elsewhere(here, event))
    ):
        return None
    if attrs["graph"] and attrs["training"] is False:
        evidence = "a loop in eval mode that trains nothing"
        by_flag = _by_flag(event, trained)
        at_once = between_updates(tape, event, trained)
        if at_once:
            evidence = "a forward in eval mode between updates, on all of the data"
        elif not (_evaluates_by_flag(tape, event, trained) if by_flag else attrs.get("sweep")):
            return None
        if _used_by_a_backward(tape, event) or differentiates(event):
            return None
    elif trains and attrs["graph"]:
        evidence = "a loop over held-out data that trains nothing"
        if not _over_held_out_data(tape, event) or _used_by_a_backward(tape, event):
            return None
        if differentiates(event):
            return None
    elif trains and not attrs["graph"] and _in_train_mode(tape, event) and _measured(tape, event):
        evidence = "without gradients, for a loss or a metric"
        if not attrs.get("held_out") and _leads_to_a_backward(tape, event):
            return None
    else:
        return None
    in_sight = trains or ("plainly" in attrs and tape.complete)
    return _seen(
        tape,
        event,
        evidence,
        graph=attrs["graph"],
        called_in_sight=in_sight and not _followed_by_the_unseen(tape, event),
        at=_told_at(event, trained),
        at_once=at_once,
    )


def _of_a_phase(tape: Tape, forward: Event) -> Evaluation | None:
    """The evaluation that a loop which trains as well is gone through for, in whatever mode."""
    attrs = forward.attrs
    graph = attrs["graph"] and "doubtful" not in attrs and not differentiates(forward)
    if not graph and not _in_train_mode(tape, forward):
        return None
    return _seen(tape, forward, "a pass over held-out data that trains nothing", graph=graph)


def _seen(
    tape: Tape,
    forward: Event,
    evidence: str,
    *,
    graph: bool,
    called_in_sight: bool = True,
    at: Location | None = None,
    at_once: bool = False,
) -> Evaluation:
    training = _in_train_mode(tape, forward)
    return Evaluation(
        forward.actor or "model",
        at or forward.where,
        None,
        training,
        graph,
        (layers_of(forward) or layers_around(forward) or ()) if training else (),
        evidence,
        called_in_sight=called_in_sight,
        set_at=forward.attrs.get("set_at"),
        at_once=at_once,
    )


def _told_at(forward: Event, trained: Trained) -> Location:
    """Of a helper that training calls too, `self.run_batch(x, y)`, where the evaluation calls it."""
    if (forward.actor, forward.where) not in trained:
        return forward.where
    called: Location = forward.attrs.get("called_at", forward.where)
    return called


def _by_flag(forward: Event, trained: Trained) -> bool:
    """Whether it is in eval mode in a loop that trains as well, by itself or by what it is given."""
    attrs = forward.attrs
    given = attrs["graph"] and attrs["training"] is False and bool(attrs.get("sweep"))
    return "plainly" in attrs or (given and (forward.actor, forward.where) in trained)


def _evaluates_by_flag(tape: Tape, forward: Event, trained: Trained) -> bool:
    """Whether a loop that trains as well is gone through in eval mode, without a backward until it ends."""
    attrs = forward.attrs
    here = (forward.actor, forward.where) in trained
    # A loop that trains nothing goes over something, whatever that is; of others only data tells so.
    aside = attrs["aside"] and not attrs.get("sweep")
    if not attrs.get("plainly", attrs.get("sweep")) or aside or not here:
        return False
    over = False
    for event in _following(tape, forward):
        if event.kind in (EventKind.BACKWARD, EventKind.STEP, EventKind.OPAQUE):
            return False
        if over and event.kind is EventKind.EPOCH_BEGIN:
            return True  # of whatever model: the one that was evaluated may be gone by then
        over |= event.kind is EventKind.EPOCH_END
        if event.kind is EventKind.MODE and event.actor == forward.actor:
            return event.attrs["training"] is True or event.where == forward.attrs.get("set_at")
    return True


def _following(tape: Tape, forward: Event) -> Iterator[Event]:
    """What comes after it, but for what keeps the model when the pass is over: `serialize(model)`."""
    over = False
    for event in tape.events[forward.index + 1 :]:
        over |= event.kind is EventKind.EPOCH_END
        if not (over and event.kind is EventKind.OPAQUE and event.attrs.get("prepares")):
            yield event


def _trained_elsewhere(trained: Trained, evaluated: Event) -> bool:
    """Whether this very model is called in train mode at another place, and a backward follows."""
    return any(actor == evaluated.actor and where != evaluated.where for actor, where in trained)


def _trained(tape: Tape) -> Iterator[tuple[str | None, Location]]:
    """The models that are called in train mode, each with the place, before a backward."""
    for event in tape.of_kind(EventKind.FORWARD):
        if event.attrs["training"] and _goes_backward(tape, event):
            yield event.actor, event.where


def _over_held_out_data(tape: Tape, forward: Event) -> bool:
    """Whether it measures what another place trains, in whatever mode."""
    attrs = forward.attrs
    if not (attrs.get("held_out") and attrs.get("sweep") and attrs.get("measured")):
        return False
    return any(
        event.where != forward.where and event.actor == forward.actor and _goes_backward(tape, event)
        for event in tape.of_kind(EventKind.FORWARD)
    )


def _goes_backward(tape: Tape, forward: Event) -> bool:
    following = until_next(tape.events[forward.index + 1 :], forward)
    return bool(forward.attrs["graph"]) and any(e.kind is EventKind.BACKWARD for e in following)


def _in_train_mode(tape: Tape, forward: Event) -> bool:
    """Whether train() was called, or nothing that could have changed the mode a model is made in."""
    attrs = forward.attrs
    own = (
        e.index for e in tape.of_kind(EventKind.MODE) if e.actor == forward.actor and e.index < forward.index
    )
    if attrs["training"] is not False and set_by_another_name(
        tape, max(own, default=0), forward, training=False
    ):
        return False
    if attrs["training"] is not None or "as_made" not in attrs:
        return bool(attrs["training"])
    seen = class_elsewhere(*attrs["origin"]) if "origin" in attrs else None
    return seen is None or "__init__" not in seen.sets_mode


def _measured(tape: Tape, forward: Event) -> bool:
    if forward.attrs.get("measured") or forward.attrs.get("meant"):
        return not forward.attrs["meant"]
    if forward.attrs.get("at_once") and follows_an_update(tape, forward):
        return True
    following = next(iter(tape.events[forward.index + 1 :]), None)
    return (
        bool(forward.attrs["aside"] or forward.attrs.get("held_out"))
        and following is not None
        and following.kind is EventKind.LOSS
        and following.attrs["graph"] is False
    )


def _used_by_a_backward(tape: Tape, forward: Event) -> bool:
    """Whether a backward may reach this forward: no other one of the model comes before it."""
    for event in _following(tape, forward):
        if event.kind is EventKind.BACKWARD:
            return True
        if event.kind is EventKind.OPAQUE and not _evaluates_by_name(forward):
            return True
        if event.kind is EventKind.FORWARD and event.actor == forward.actor and not event.attrs.get("sweep"):
            return False
        if event.kind in NEW_DATA:
            return False
    return False


def _leads_to_a_backward(tape: Tape, forward: Event) -> bool:
    """Whether this very batch is trained on next: the first steps of a prediction may need no gradients."""
    for event in takewhile(lambda event: event.kind not in NEW_DATA, tape.events[forward.index + 1 :]):
        if event.kind is EventKind.BACKWARD:
            return True
        if event.kind is EventKind.FORWARD and event.where.function != forward.where.function:
            return False
    return False


def _evaluates_by_name(forward: Event) -> bool:
    """`stats.update(loss)` in a function that is called `validate`, or after it: unseen, and no backward."""
    places: tuple[Location, ...] = (forward.where, forward.attrs.get("called_at", forward.where))
    names = ((place.function or "").rpartition(".")[2] for place in places)
    return any(map(words.EVALUATES.match, names))


def _followed_by_the_unseen(tape: Tape, forward: Event) -> bool:
    unseen = any(event.kind is EventKind.OPAQUE for event in until_next(_following(tape, forward), forward))
    return unseen and not _evaluates_by_name(forward)

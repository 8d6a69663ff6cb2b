"""Loops, unrolled as far as their wrap-around and their windows need.

Two passes over the data and a few batches each show everything an order rule can ask: what the second
iteration inherits from the first, and what the second epoch inherits from the first.
"""

from __future__ import annotations

import ast
import contextlib

from gradclinic.facts import EventKind
from gradclinic.static import modes, words
from gradclinic.static.abilities import Can
from gradclinic.static.branches import note_exits
from gradclinic.static.conditions import name_of, truth
from gradclinic.static.expressions import bind, evaluate
from gradclinic.static.iteration import item_of, items_of
from gradclinic.static.roles import role_of
from gradclinic.static.syntax import is_window, last_name, names_in, nodes_in, picks_some
from gradclinic.static.values import ActorRef, Num, Params, Range, Seq, Stream, Value
from gradclinic.static.walk import BreakLoop, ContinueLoop, Walk

LONGEST_EXACT = 12
"""A loop with a known, small number of iterations is run as it is."""


def run_for(walk: Walk, node: ast.For | ast.AsyncFor) -> None:
    note_exits(walk.survey, node)
    source = evaluate(walk, node.iter)
    can = walk.can(node)
    if isinstance(source, Seq) and not source.items and _is_of_data(walk, node, can):
        source = Stream(last_name(node.iter))  # Nobody trains on an empty list: it was filled out of sight.
    known = items_of(walk, source, node.target)
    if known is not None:
        some = isinstance(source, Params) and picks_some(node)
        walk.some_parameters += some
        _run(walk, node, list(known))
        walk.some_parameters -= some
        return
    if not can & Can.ACT or walk.summarising:
        _run(walk, node, [item_of(walk, source, node.target, 0)])
        return
    first = item_of(walk, source, node.target, 0)
    if _is_actor(first) or (not can & Can.BACKWARD and _goes_to_scalers(walk, node)):
        _run(walk, node, [first])  # It stands for all of them: twice the same would be stepped twice.
        return
    owns = walk.survey.owns_beat(node) and _may_beat(walk, node, source)
    count = _count(walk, node, source, owns=owns, can=can)
    items = [item_of(walk, source, node.target, index) for index in range(count)]
    _look_ahead(source, items)
    exact = isinstance(source, Range) and _exact(source)
    data = owns and (not isinstance(source, Range) or exact or _counts_batches(source))
    # `for _ in range(len(loader)): batch = next(batches)` goes over the data as well.
    fetched = not owns and not walk.batches and isinstance(source, Range) and _counts_batches(source)
    passes = (data or (fetched and walk.survey.beats_inside(node))) and not is_window(node)
    _run(walk, node, items, beats=owns, passes=passes, known=exact, over=name_of(source))


def _is_of_data(walk: Walk, node: ast.For | ast.AsyncFor, can: int) -> bool:
    """Whether a loop that trains, or goes forward, goes over samples and not over parts of the training."""
    if can & (Can.BACKWARD | Can.STEP) and not walk.survey.owns_beat(node):
        return False
    names = names_in(node.target)
    return not any(role_of(walk.survey, name) or words.LOSS_NAME.search(name) for name in names)


def _is_actor(value: Value) -> bool:
    """An optimizer, a schedule or a scaler, by itself or beside its number and others."""
    return isinstance(value, ActorRef) or (isinstance(value, Seq) and any(map(_is_actor, value.items)))


def _goes_to_scalers(walk: Walk, node: ast.For | ast.AsyncFor) -> bool:
    """`for o in optimizers: scaler.unscale_(o)`: optimizers that nothing else in the file says to be such."""
    targets = set(names_in(node.target))
    return "unscale_" in walk.survey.mentions(node) and any(
        isinstance(part, ast.Call)
        and last_name(part.func) == "unscale_"
        and any(isinstance(given, ast.Name) and given.id in targets for given in part.args)
        for part in nodes_in(node)
    )


def _may_beat(walk: Walk, node: ast.For | ast.AsyncFor, source: Value) -> bool:
    """Inside a batch, only a window over micro-batches brings new data."""
    return walk.batches == 0 or is_window(node) or not isinstance(source, Range)


def _exact(source: Range) -> bool:
    return isinstance(source.bound, Num) and source.bound.value is not None and not source.bound.invented


def _look_ahead(source: Value, items: list[Value]) -> None:
    """`for epoch in range(25)` comes to more numbers than the first few that are walked."""
    if not isinstance(source, Range) or not isinstance(source.bound, Num) or not _exact(source):
        return
    last, last_of_all = source.start + len(items) - 1, source.start + (source.bound.value or 0) - 1
    for item in items if last < last_of_all else ():
        if isinstance(item, Num):
            item.ahead = last, last_of_all


def _counts_batches(source: Range) -> bool:
    return isinstance(source.bound, Num) and "batch" in source.bound.units


def _count(walk: Walk, node: ast.For | ast.AsyncFor, source: Value, *, owns: bool, can: int) -> int:
    depth = walk.survey.depth(node)
    if depth >= 2 and not _is_epoch(node):
        return 1
    if depth >= 1:
        return min(3 if modes.evaluates_at_times(walk, node) else 2, _known(source))
    if isinstance(source, Range):
        return 1 if _steps_each(node, source, can) else _range_count(walk, source, can)
    if owns or walk.survey.beats_inside(node):
        return walk.data_length
    return 2


def _steps_each(node: ast.For | ast.AsyncFor, source: Range, can: int) -> bool:
    """`for i in range(len(optimizers)): optimizers[i].step()`, each of them once."""
    if can & (Can.STEP | Can.BACKWARD) != Can.STEP or _exact(source) or not isinstance(node.target, ast.Name):
        return False
    numbered = [part for part in nodes_in(node) if isinstance(part, ast.Subscript)]
    return any(isinstance(part.slice, ast.Name) and part.slice.id == node.target.id for part in numbered)


def _known(source: Value) -> int:
    if isinstance(source, Range) and isinstance(source.bound, Num) and source.bound.value is not None:
        # `EPOCHS = 1` is where it is tried out, and no program is meant to end there.
        return max(source.bound.value, 2) if "epoch" in source.bound.units else source.bound.value
    return 3


def _range_count(walk: Walk, source: Range, can: int) -> int:
    bound = source.bound.value if isinstance(source.bound, Num) else None
    if bound is None:
        return walk.rounds
    if bound <= LONGEST_EXACT:
        return bound
    if isinstance(source.bound, Num) and "accumulation" in source.bound.units:
        return walk.window
    return walk.rounds + (bound % walk.period if can & Can.GUARD else 0)


def run_while(walk: Walk, node: ast.While) -> None:
    can = walk.can(node)
    owns = walk.survey.owns_beat(node)
    if not can & Can.ACT or walk.summarising or walk.survey.depth(node) >= 2:
        count = 1
    elif walk.survey.depth(node) == 1:
        count = 3 if modes.evaluates_at_times(walk, node) else 2
    else:
        count = walk.rounds
    walk.batches += owns
    walk.loops.append((walk.frame, False, node))
    sweeps = modes.enter_loop(walk, node)
    broken = False
    try:
        for index in range(count):
            test = evaluate(walk, node.test)
            if truth(test) is False:
                break
            walk.loops[-1] = (walk.frame, index == count - 1, node)
            if owns:
                walk.emit(EventKind.BATCH, node)
            try:
                walk.execute(walk, node.body)
            except ContinueLoop:
                continue
    except BreakLoop:
        broken = True
    finally:
        walk.loops.pop()
        walk.batches -= owns
        del walk.sweeps[sweeps:]
    if not broken:
        walk.execute(walk, node.orelse)


def _run(
    walk: Walk,
    node: ast.For | ast.AsyncFor,
    items: list[Value],
    *,
    beats: bool = False,
    passes: bool = False,
    known: bool = False,
    over: str = "",
) -> None:
    each = beats and _is_epoch(node)
    attrs = {"loop": f"{node.lineno}:{node.col_offset}", "known": known, "over": over}
    if passes and not each:
        walk.emit(EventKind.EPOCH_BEGIN, node, attrs=attrs)
    walk.batches += beats
    walk.loops.append((walk.frame, False, node))
    sweeps = modes.enter_loop(walk, node)
    last_before = walk.last_batch
    broken = False
    try:
        for index, item in enumerate(items):
            if beats:
                walk.last_batch = passes and index == len(items) - 1
                if each:
                    walk.emit(EventKind.EPOCH_BEGIN, node, attrs=attrs)
                walk.emit(EventKind.BATCH, node)
            bind(walk, node.target, item)
            walk.loops[-1] = (walk.frame, index == len(items) - 1, node)
            with contextlib.suppress(ContinueLoop):
                walk.execute(walk, node.body)
            if each:
                walk.emit(EventKind.EPOCH_END, node, attrs=attrs)
    except BreakLoop:
        broken = True
    finally:
        walk.loops.pop()
        walk.batches -= beats
        del walk.sweeps[sweeps:]
        walk.last_batch = last_before
    if not broken:
        if passes and not each:
            walk.emit(EventKind.EPOCH_END, node, attrs=attrs)
        walk.execute(walk, node.orelse)


def _is_epoch(node: ast.For | ast.AsyncFor) -> bool:
    """`for epoch in range(epochs)` with the whole data in each iteration."""
    return any(words.EPOCH_NAME.search(name) for name in [*names_in(node.target), *names_in(node.iter)])

"""Train and eval mode, as the walk goes: what each model is in, and what a forward then means."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from gradclinic.facts import Location
from gradclinic.static import words
from gradclinic.static.abilities import Can
from gradclinic.static.conditions import holds, truth
from gradclinic.static.elsewhere import class_elsewhere, computing_elsewhere
from gradclinic.static.held_out import (
    is_random_on_purpose,
    judges_at_once,
    names_of,
    over_held_out_data,
    speaks_of_held_out_data,
)
from gradclinic.static.layers import any_differentiates
from gradclinic.static.library_layers import drops
from gradclinic.static.own_methods import Written
from gradclinic.static.purposes import serves_training
from gradclinic.static.syntax import last_name, names_in, nodes_in
from gradclinic.static.values import EITHER, NOTHING, Instance, Mode, Model, Tensor, Value
from gradclinic.static.walk import Walk

_DEEPEST_PART = 4
_CHANGES_MODE = words.Pattern(
    r"train|eval|mode|valid|test|infer|predict|epoch|begin|start|before|after|hook", re.I
)
_CALLS_BACK = words.Pattern(
    r"(^|_)(on|before|after|begin)_|_begin$|hook|callback|(^|_)(fire|emit|trigger|notify)(_|$)", re.I
)
_STORES = words.Pattern(r"_*(save|store|dump|log|print|write|upload|push|plot|count)_")
"""`save_model(model)` speaks of the model, not of a mode."""
_MAKES_A_STATE = words.Pattern(
    r"(init|initialize|reset|zero|get)(_\w*)?(hidden|state|cell|memory)s?$|reset$", re.I
)
"""`model.init_hidden(batch_size)`, at the head of most evaluations of a recurrent network."""
_COMPUTES = words.Pattern(r"(generate|((\w+_)?(en|de)code)|embed|forward)(_|$)")
"""Methods of a model that is not in sight, or of a part of it, that run it as it is."""
_GIVES_A_LOSS = words.Pattern(r"(?!_?(reset|set|log|clear|add|update|print)_)\w*loss(es)?$")
_GRADIENTS_WANTED = frozenset(
    {"autograd", "enable_grad", "requires_grad", "requires_grad_", "set_grad_enabled", "jacobian"}
)
_DERIVED = words.Pattern(r"(^|_)(forces?|stress(es)?|hessians?)$", re.I)
"""What a model that is not in sight may well compute by a gradient of its own."""
_FREEZES = frozenset({"requires_grad", "requires_grad_"})
_WITHOUT_GRADIENTS = frozenset({"no_grad", "inference_mode"})
_ACTS = frozenset({"env", "envs", "environment"})
"""One observation at a time goes in, and the graph of each action is gone with the next."""


def switch(model: Model, training: bool | None, where: Location | None, depth: int = _DEEPEST_PART) -> None:
    """train() or eval() on a model reaches all its parts."""
    model.mode.training, model.mode.set_at, model.mode.untouched = training, where, False
    for part in model.attrs.values() if depth else ():
        inner = part.model if isinstance(part, Instance) else part
        if isinstance(inner, Model):
            switch(inner, training, where, depth - 1)


def wanted(walk: Walk, mode: Value, call: ast.Call) -> bool | None:
    """What `model.train(training)` asks for.

    A flag by which the same function goes backward or not is decided here, as it would be there.
    """
    known = truth(mode)
    flag = call.args[0] if call.args else None
    if known is not None or walk.summarising or not walk.active or not isinstance(flag, ast.Name):
        return known
    trains = any(
        isinstance(part, ast.If)
        and isinstance(part.test, ast.Name)
        and part.test.id == flag.id
        and walk.survey.can_any(part.body) & Can.BACKWARD
        for part in nodes_in(walk.active[-1])
    )
    return holds(walk, mode) if trains else None


def varies(walk: Walk, call: ast.Call) -> bool:
    """`for part in parts: part.train() if part.trains else part.eval()`: a name for models in both modes."""
    loop = walk.sweeps[-1] if walk.sweeps else None
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    owners = frozenset(names_in(call.func)) & frozenset(names_in(loop.target))
    return bool(owners) and {"train", "eval"} <= names_of(walk, loop)


def doubt(name: str, values: Iterable[Value]) -> None:
    """A call that cannot be followed may have put the models it reaches into either mode."""
    told = name.replace("model", "") if _STORES.match(name) else name
    if (words.harmless(name) or _MAKES_A_STATE.match(name)) and not _CHANGES_MODE.search(told):
        return
    for value in values:
        if isinstance(value, Model):
            switch(value, None, None)


def gives_a_loss(method: str) -> bool:
    """`model.loss(batch)`, and not `model.test_loss(batch)` or `model.reset_loss()`."""
    return _GIVES_A_LOSS.match(method) is not None and not _CHANGES_MODE.search(method)


def computes(walk: Walk, model: Model, method: str, given: Iterable[Value]) -> bool:
    """Whether it is a method in sight that runs forward, or layers with weights, with a graph.

    Not of what is `given` from where there are no gradients, or detached: somebody has thought of them.
    """
    if any(isinstance(value, Tensor) and value.models == NOTHING for value in given):
        return False
    here, known = walk.survey.functions.get(method), walk.survey.computing
    by_layers = _FREEZES.isdisjoint(names_of(walk, walk.survey.tree))
    if not here:
        origin = model.origin
        return bool(origin) and method in computing_elsewhere(origin, walk.path, by_layers=by_layers)
    if method not in known:
        owners = [cls for cls in walk.survey.classes.values() if any(part in here for part in cls.body)]
        written = Written(reversed(walk.survey.trees))
        known[method] = len(owners) == len(here) and all(
            method in written.computing(cls, by_layers=by_layers) for cls in owners
        )
    return known[method]


def writes(walk: Walk, model: Model, method: str) -> bool:
    """`model.generate(ids)` of transformers, in an evaluation: without a graph, in the mode of the model."""
    of_transformers = model.origin.startswith("transformers.") or any(map(drops, model.layers or ()))
    return method == "generate" and of_transformers and bool(walk.sweeps) and over_held_out_data(walk)


def after_method(walk: Walk, model: Model, method: str) -> None:
    """A method of the model itself was called: where it is in sight, that tells if it changes the mode."""
    here = walk.survey.functions.get(method, ())
    seen = class_elsewhere(model.origin, walk.path) if model.origin and not here else None
    if here:
        changes = any(walk.can(node) & Can.ACT for node in here)
    elif seen is not None and method in seen.methods:
        changes = method in seen.sets_mode
    else:
        # Of a library, or called for what it computes.
        computes = words.LOSS_FUNCTION.search(method) or _COMPUTES.match(method)
        if _CHANGES_MODE.search(method) or not computes:
            doubt(method, [model])
        return
    if changes:
        switch(model, None, None)


def enter_loop(walk: Walk, loop: ast.For | ast.AsyncFor | ast.While) -> int:
    """How many loops that train nothing are around this one, which is counted from now on if it is such, and
    does not merely take the first batch to look at."""
    around = len(walk.sweeps)
    if not walk.can(loop) & (Can.BACKWARD | Can.STEP) and not isinstance(loop.body[-1], ast.Break):
        walk.sweeps.append(loop)
    return around


def evaluates_at_times(walk: Walk, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """`if epoch % k == 0: evaluate(model)`: the iteration after it shows what it leaves behind."""
    return any(
        isinstance(part, ast.If)
        and any(isinstance(node, ast.Mod) for node in ast.walk(part.test))
        and walk.survey.can_any(part.body) & Can.ACT
        for part in loop.body
    )


def of_forward(walk: Walk, model: Model, node: ast.AST, *, direct: bool = True) -> dict[str, object]:
    """What the tape tells of one forward: the mode, whether it builds a graph, what it is for."""
    mixed = walk.survey.sets_modes_by_hand or _mixed(model, model.mode)
    attrs: dict[str, object] = {
        "training": None if mixed else model.mode.training,
        "graph": not walk.no_grad,
        "aside": not walk.batches,
    }
    if model.bypasses and not walk.no_grad and not walk.supposed_wrongly:
        attrs["bypasses"] = model.bypasses
    if walk.autocast and walk.autocast[-1][0]:
        attrs["precision"] = walk.autocast[-1][0]
    if model.mode.set_at is not None:
        attrs["set_at"] = model.mode.set_at
    if any("@" in key or "()" in key for key in model.keys):
        attrs["made"] = True  # in sight, and not somewhere by a caller
    if model.layers is not None:
        attrs["layers"] = model.layers
    elif model.origin:
        attrs["origin"] = (model.origin, walk.path)
    elif len(options := list(_options(model))) > 1:
        attrs["either"] = tuple((one.layers, (one.origin, walk.path)) for one in options)
    if model.mode.untouched and not mixed and not _asks_others(walk):
        attrs["as_made"] = True
    if not walk.no_grad and not walk.sweeps and _may_need_graph(walk):
        attrs["doubtful"] = True
    if model.mode.training is False and not walk.no_grad and not walk.sweeps and direct:
        attrs["plainly"] = not _may_need_graph(walk) and not any(
            _switches_gradients(walk, node) for node in walk.active
        )
        spoken_of = names_of(walk, walk.loops[-1][2]) if walk.loops else set()
        derives = spoken_of & _GRADIENTS_WANTED or any(map(_DERIVED.search, spoken_of))
        attrs["of_held_out"] = not derives and speaks_of_held_out_data(walk)
    if walk.sweeps and direct:
        around = walk.active[-1:]
        named = {name for node in [*walk.sweeps[-1:], *around] for name in names_of(walk, node)}
        # Where the same function trains, it may speak of parameters that it freezes.
        trains = any(walk.can(node) & Can.BACKWARD for node in around)
        wanted = names_of(walk, walk.sweeps[-1]) | (named - _FREEZES if trains else named)
        within = names_of(walk, walk.sweeps[-1])
        derived = any(map(_DERIVED.search, within)) or ("grad" in within and _asks_grad(walk.sweeps[-1]))
        acts = bool(wanted & _ACTS)
        attrs["sweep"] = not (wanted & _GRADIENTS_WANTED or acts or derived or _may_need_graph(walk))
        # What torch before 0.4 was told by `Variable(x, volatile=True)`.
        attrs["graph"] = attrs["graph"] and "volatile" not in named
        attrs["meant"] = (
            is_random_on_purpose(named)
            or _trained_on_purpose(walk, model, node)
            or (walk.no_grad > 0 and _serves_training(walk, node))
        )
        called = walk.called_by_loop_at() if walk.loops else None
        if called is not None:
            attrs["called_at"] = called
        attrs["held_out"] = over_held_out_data(walk)
        # Where the same function trains, it speaks of the loss that it trains by.
        told = named if attrs["held_out"] or not trains else names_of(walk, walk.sweeps[-1])
        attrs["measured"] = not (attrs["meant"] or (acts and not attrs["held_out"])) and any(
            words.MEASURES.search(name) or (attrs["held_out"] and words.MEASURES_HELD_OUT.search(name))
            for name in told
        )
    elif isinstance(node, ast.Call):
        given = [name for part in node.args for name in names_in(part)]
        held_out = any("_" in name and words.HELD_OUT.search(name) for name in given)
        attrs["held_out"] = held_out
        attrs["at_once"] = walk.no_grad > 0 and direct and judges_at_once(walk, model, given=held_out)
    return attrs


def _options(model: Model) -> Iterator[Model]:
    """Of a model that two branches have made: what each of them did."""
    sides = [part for name, part in model.attrs.items() if name in EITHER and isinstance(part, Model)]
    if not sides:
        yield model
    for side in sides:
        yield from _options(side)


def _asks_grad(loop: ast.AST) -> bool:
    """`grad(loss, parameters)`; `weight.grad` is what an earlier backward has left there."""
    return any(isinstance(part, ast.Call) and last_name(part.func) == "grad" for part in nodes_in(loop))


def _may_need_graph(walk: Walk) -> bool:
    """Whether gradients may be off in a way that is not followed, or needed by the models themselves."""
    survey = walk.survey
    return bool(walk.perhaps_no_grad) or survey.switches_gradients or any_differentiates(survey)


def _switches_gradients(walk: Walk, function: ast.AST) -> bool:
    """Whether it speaks of gradients on or off, but for a block of it that has none and ends in sight."""
    named = names_of(walk, function)
    if named & _GRADIENTS_WANTED or not named & _WITHOUT_GRADIENTS:
        return bool(named & _GRADIENTS_WANTED)
    nodes = nodes_in(function)
    blocks = [
        item.context_expr.func
        for node in nodes
        if isinstance(node, (ast.With, ast.AsyncWith))
        for item in node.items
        if isinstance(item.context_expr, ast.Call) and not item.context_expr.args
    ]
    written = [
        node
        for node in nodes
        if isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) in _WITHOUT_GRADIENTS
    ]
    return not all(node in blocks for node in written)


def _trained_on_purpose(walk: Walk, model: Model, node: ast.AST) -> bool:
    """A function that trains nothing and calls `model.train()` wants it so; and what goes over the chunks of
    a batch that is trained on is no evaluation.

    But who calls it in `evaluate`, and eval() nowhere at all, has copied the line.
    """
    set_at, loop = model.mode.set_at, walk.sweeps[-1]
    set_here = set_at is not None and set_at.function == walk.frame.qualname and bool(walk.active)
    if set_here and not walk.can(walk.active[-1]) & Can.BACKWARD:
        return not _copied_from_training(walk, node)
    return bool(walk.batches) and not (
        isinstance(loop, (ast.For, ast.AsyncFor))
        and any(words.LOADER_NAME.search(name) or words.HELD_OUT.search(name) for name in names_in(loop.iter))
    )


def _serves_training(walk: Walk, node: ast.AST) -> bool:
    """Whether what it gives, say losses, is what samples that are trained on are chosen or weighted by."""
    key = (node, tuple(walk.active))
    known = walk.survey.purposes.get(key)
    if known is None:
        scopes = [walk.survey.tree, *walk.active]
        known = walk.survey.purposes[key] = serves_training(walk.sweeps[-1], node, scopes, walk.survey)
    return known


def _copied_from_training(walk: Walk, node: ast.AST) -> bool:
    """Some models give their losses in train mode only, and are given the targets for that."""
    function = walk.active[-1]
    return (
        isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        and words.EVALUATES.match(function.name) is not None
        and isinstance(node, ast.Call)
        and len(node.args) == 1
        and not node.keywords
        and not any("eval" in methods for methods in walk.survey.methods_of.values())
    )


def _asks_others(walk: Walk) -> bool:
    """`self.callbacks.on_validation_begin()`: what is called there may well put the model into eval mode."""
    return any(
        _CALLS_BACK.search(name) or words.SETS_MODE.search(name)
        for node in walk.active[-2:]
        for name in names_of(walk, node)
    )


def _mixed(model: Model, mode: Mode, depth: int = _DEEPEST_PART) -> bool:
    """Whether a part is in another mode than the whole: somebody chose so."""
    for part in model.attrs.values() if depth else ():
        inner = part.model if isinstance(part, Instance) else part
        if not isinstance(inner, Model):
            continue
        as_made = mode.untouched and inner.mode.untouched
        if not (as_made or inner.mode.training is mode.training) or _mixed(inner, mode, depth - 1):
            return True
    return False

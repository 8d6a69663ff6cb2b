"""Distributed samplers that nobody tells the epoch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts import ShardedShuffle
from gradclinic.static import words
from gradclinic.static.plain.scopes import Scope, over_epochs, scopes
from gradclinic.static.syntax import last_name, names_in, nodes_in

_TOLD = (
    "set_epoch",
    ".epoch =",
    "accelerate",
    "lightning",
    "ignite",
    "fastai",
    "horovod",
    "mmcv",
)
"""Words of files in which the epoch is set, or in which a framework sets it."""
_HELD_OUT = words.Pattern(r"val|test|eval|dev|valid|infer|predict", re.I)
_TRAINS = words.Pattern(r"(^|[ _])train", re.I)
_IS_TRAINED_ON = re.compile(r"train(ing)?", re.I)

_OWN_TRAINER = words.Pattern(r"class Trainer\b")


def may_tell(text: str) -> bool:
    if "DistributedSampler" not in text or any(word in text for word in _TOLD):
        return False
    return "Trainer(" not in text or bool(_OWN_TRAINER.search(text))


def read(tree: ast.Module, text: str, path: str) -> Iterator[ShardedShuffle]:
    if not _repeats_its_passes(tree):
        return
    makers = {"DistributedSampler"} | _called_otherwise(tree)
    for scope in scopes(tree):
        for node in scope.nodes if not _evaluates(scope, tree) else ():
            if not isinstance(node, (ast.Assign, ast.Return)) or node.value is None:
                continue
            name = last_name(node.targets[0]) if isinstance(node, ast.Assign) else scope.qualname
            for split, value in _by_split(node.value):
                about = [name, split, *names_in(value)]
                for call in _made_by(value):
                    shuffled = _shuffles(call, makers) or _shuffles_when_asked(call, makers, scope, tree)
                    held_out = any(_HELD_OUT.search(word) for word in about)
                    if shuffled and not held_out and not _anew(call, scope):
                        yield ShardedShuffle(scope.at(call, path), None)


def _evaluates(scope: Scope, tree: ast.Module) -> bool:
    """Whether all that have it make a loader do so for data held out: `get_loader(data, evaluate=True)`."""
    makes = any(isinstance(node, ast.Return) and node.value is not None for node in scope.nodes)
    asking = [
        " ".join([other.qualname, *(keyword.arg or "" for keyword in call.keywords), *names_in(call)])
        for other in (scopes(tree) if makes else ())
        for call in other.calls()
        if last_name(call.func) == _name(scope)
    ]
    return bool(asking) and all(_HELD_OUT.search(said) and not _TRAINS.search(said) for said in asking)


def _anew(call: ast.Call, scope: Scope) -> bool:
    """`for epoch in ...: data = load(epoch)`: what is read once for an epoch has no order to repeat."""
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "dataset")]
    loops = [loop for loop in scope.nodes if isinstance(loop, ast.For) and call in nodes_in(loop)]
    changing = [_made_of(names_in(loop.target), loop) for loop in loops]
    return any(not names.isdisjoint(names_in(data)) for names in changing for data in given)


def _made_of(names: list[str], loop: ast.For) -> set[str]:
    """The names themselves, and those that are given something made of them in the loop, and of these."""
    found = set(names)
    for node in nodes_in(loop):  # in the order of the source, but for what is nested
        if isinstance(node, ast.Assign) and not found.isdisjoint(names_in(node.value)):
            found.update(last_name(target) for target in node.targets if isinstance(target, ast.Name))
    return found


def _called_otherwise(tree: ast.Module) -> set[str]:
    """`sampler = RandomSampler if rank == -1 else DistributedSampler`, the class and not one of it."""
    return {
        last_name(node.targets[0])
        for scope in scopes(tree)
        for node in scope.nodes
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.IfExp)
        and "DistributedSampler" in (last_name(node.value.body), last_name(node.value.orelse))
        and not any(isinstance(part, ast.Call) for part in (node.value.body, node.value.orelse))
    }


def _by_split(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Of `{"train": ..., "val": ...}` what is trained on; of `{split: ... for split in ["train", "val"]}` the
    one, which stands for it. Of what is made for several without such a name, each may be gone over once."""
    if isinstance(value, ast.Dict):
        for key, held in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and _IS_TRAINED_ON.fullmatch(str(key.value)):
                yield str(key.value), held
    elif isinstance(value, (ast.DictComp, ast.ListComp)):
        over = [str(node.value) for node in nodes_in(value.generators[0].iter) if type(node) is ast.Constant]
        trained = next((split for split in over if _IS_TRAINED_ON.fullmatch(split)), None)
        if trained is not None:
            yield trained, value.value if isinstance(value, ast.DictComp) else value.elt
    else:
        yield "", value


def _made_by(value: ast.expr) -> list[ast.Call]:
    """The call itself, those of either branch, and the sampler handed to a loader."""
    if isinstance(value, ast.IfExp):
        return [*_made_by(value.body), *_made_by(value.orelse)]
    if not isinstance(value, ast.Call):
        return []
    given = [k.value for k in value.keywords if k.arg == "sampler" and isinstance(k.value, ast.Call)]
    return [value, *(call for call in given if isinstance(call, ast.Call))]


def _shuffles(call: ast.Call, makers: set[str]) -> bool:
    if last_name(call.func) not in makers or any(keyword.arg == "seed" for keyword in call.keywords):
        return False
    shuffle = next((keyword.value for keyword in call.keywords if keyword.arg == "shuffle"), None)
    if shuffle is None:
        return len(call.args) < 4 and all(keyword.arg is not None for keyword in call.keywords)
    return isinstance(shuffle, ast.Constant) and shuffle.value is True


def _shuffles_when_asked(call: ast.Call, makers: set[str], scope: Scope, tree: ast.Module) -> bool:
    """`return DistributedSampler(data, shuffle=shuffle)`, and whoever asks for it says `shuffle=True`."""
    asked = [k.value for k in call.keywords if k.arg == "shuffle" and isinstance(k.value, ast.Name)]
    if last_name(call.func) not in makers or not asked or not scope.qualname:
        return False
    return any(
        keyword.arg == asked[0].id and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        for other in scopes(tree)
        for asking in other.calls()
        if last_name(asking.func) == _name(scope)
        for keyword in asking.keywords
    )


def _repeats_its_passes(tree: ast.Module) -> bool:
    """Whether the batches and the epochs are looped over in this file: elsewhere the epoch may be set."""
    every = scopes(tree)
    loops = [node for scope in every for node in scope.nodes if isinstance(node, (ast.For, ast.While))]
    fors = [loop for loop in loops if isinstance(loop, ast.For)]
    epochs = [loop for loop in fors if over_epochs(loop)]
    passes = [loop for loop in fors if any(words.LOADER_NAME.search(name) for name in names_in(loop.iter))]
    if epochs and any("backward" in names_in(loop) for loop in (*epochs, *passes)):
        return True
    return any(
        _is_repeated(scope, loop, loops)
        for scope in every
        for loop in passes
        if loop in scope.nodes and _brings_batches(loop, every)
    )


def _brings_batches(loop: ast.For, every: tuple[Scope, ...]) -> bool:
    """Whether its items are trained on, there or in a function it calls, or handed on by a generator."""
    called = set(names_in(loop))
    return (
        "backward" in called
        or any(isinstance(node, ast.Yield) for node in nodes_in(loop))
        or any("backward" in names_in(other.node) for other in every if _name(other) in called)
    )


def _is_repeated(scope: Scope, batches: ast.For, loops: list[ast.For | ast.While]) -> bool:
    """Whether a loop around it, or around a call of its function, goes over the data again: one over epochs,
    or an open-ended one.

    A counted loop that is not over epochs goes over folds, files or models, each with a sampler of its own.
    """
    again = [loop for loop in loops if isinstance(loop, ast.While) or over_epochs(loop)]
    return any(batches in nodes_in(loop) or _name(scope) in _called_in(loop) for loop in again)


def _called_in(loop: ast.For | ast.While) -> set[str]:
    """Functions of the file, and methods of its own, that a loop calls."""
    called = [node.func for node in nodes_in(loop) if isinstance(node, ast.Call)]
    return {
        last_name(func)
        for func in called
        if isinstance(func, ast.Name) or (isinstance(func, ast.Attribute) and last_name(func.value) == "self")
    }


def _name(scope: Scope) -> str:
    return scope.qualname.rpartition(".")[2]

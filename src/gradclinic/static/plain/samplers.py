"""Distributed samplers that nobody tells the epoch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts import ShardedShuffle
from gradclinic.static import words
from gradclinic.static.plain.scopes import scopes
from gradclinic.static.syntax import last_name, names_in

WORDS = ("DistributedSampler",)
_TOLD = (
    "set_epoch",
    ".epoch =",
    "accelerate",
    "lightning",
    "ignite",
    "fastai",
    "Trainer(",
    "horovod",
    "mmcv",
)
"""Words of files in which the epoch is set, or in which a framework sets it."""
_HELD_OUT = words.Pattern(r"val|test|eval|dev|valid|infer|predict", re.I)


def read(tree: ast.Module, text: str, path: str) -> Iterator[ShardedShuffle]:
    if any(word in text for word in _TOLD) or not _trains_in_epochs(tree):
        return
    makers = {"DistributedSampler"} | _called_otherwise(tree)
    for scope in scopes(tree):
        for node in scope.nodes:
            if not isinstance(node, ast.Assign):
                continue
            for call in _made_by(node.value):
                about = [last_name(node.targets[0]), *names_in(node.value)]
                if _shuffles(call, makers) and not any(_HELD_OUT.search(name) for name in about):
                    yield ShardedShuffle(scope.at(call, path), None)


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


def _made_by(value: ast.expr) -> list[ast.Call]:
    """The call itself, those of either branch, and the sampler handed to a loader."""
    if isinstance(value, ast.IfExp):
        return [*_made_by(value.body), *_made_by(value.orelse)]
    if not isinstance(value, ast.Call):
        return []
    given = [k.value for k in value.keywords if k.arg == "sampler" and isinstance(k.value, ast.Call)]
    return [value, *(call for call in given if isinstance(call, ast.Call))]


def _shuffles(call: ast.Call, makers: set[str]) -> bool:
    if last_name(call.func) not in makers:
        return False
    shuffle = next((keyword.value for keyword in call.keywords if keyword.arg == "shuffle"), None)
    if shuffle is None:
        return len(call.args) < 4 and all(keyword.arg is not None for keyword in call.keywords)
    return isinstance(shuffle, ast.Constant) and shuffle.value is True


def _over_epochs(loop: ast.For) -> bool:
    """By what it counts, or by how far: `for _ in range(args.epochs)`, `for state["epoch"] in ...`."""
    return any(words.EPOCH_NAME.search(name) for name in [*names_in(loop.target), *names_in(loop.iter)])


def _trains_in_epochs(tree: ast.Module) -> bool:
    """Whether the batches and the epochs are looped over in this file: elsewhere the epoch may be set."""
    loops = [node for scope in scopes(tree) for node in scope.nodes if isinstance(node, ast.For)]
    epochs = [loop for loop in loops if _over_epochs(loop)]
    batches = any(
        any(words.LOADER_NAME.search(name) for name in names_in(loop.iter)) and "backward" in names_in(loop)
        for loop in loops
    )
    return bool(epochs) and (batches or any("backward" in names_in(loop) for loop in epochs))

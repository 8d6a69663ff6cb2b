"""Distributed samplers that nobody tells the epoch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts import ShardedShuffle
from gradclinic.static import words
from gradclinic.static.plain.scopes import scopes
from gradclinic.static.syntax import last_name, names_in

WORDS = ("DistributedSampler(",)
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
    for scope in scopes(tree):
        for node in scope.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _shuffles(node.value):
                about = [last_name(node.targets[0]), *names_in(node.value)]
                if not any(_HELD_OUT.search(name) for name in about):
                    yield ShardedShuffle(scope.at(node.value, path), None)


def _shuffles(call: ast.Call) -> bool:
    if last_name(call.func) != "DistributedSampler":
        return False
    shuffle = next((keyword.value for keyword in call.keywords if keyword.arg == "shuffle"), None)
    if shuffle is None:
        return len(call.args) < 4 and all(keyword.arg is not None for keyword in call.keywords)
    return isinstance(shuffle, ast.Constant) and shuffle.value is True


def _trains_in_epochs(tree: ast.Module) -> bool:
    """Whether the batches and the epochs are looped over in this file: elsewhere the epoch may be set."""
    loops = [node for scope in scopes(tree) for node in scope.nodes if isinstance(node, ast.For)]
    epochs = any(words.EPOCH_NAME.search(name) for loop in loops for name in names_in(loop.target))
    batches = any(
        any(words.LOADER_NAME.search(name) for name in names_in(loop.iter)) and "backward" in names_in(loop)
        for loop in loops
    )
    return epochs and batches

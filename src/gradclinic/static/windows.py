"""What a file says of its windows beside the loop: that they are whole, or made up for by the rate."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable

from gradclinic.static import words
from gradclinic.static.syntax import last_name, names_in, nodes_in

_RATE = words.Pattern(r"lr$|learning_?rate$|^lr_[a-z]+$")
_FACTORS = words.Pattern(r"^(LambdaLR|MultiplicativeLR|ConstantLR|LinearLR)$")
"""Schedules that multiply the rate by what they are given."""
_BATCH = words.Pattern(r"^(?!.*(effective|total|global|full)).*batch_?size$|^ims_per_batch$|^bsz?$", re.I)
"""What counts the samples of one batch, not of a window."""
_OF_RATES = words.Pattern(
    r"lr|learning_rate|gpu|world_size|^(self|args?|cfg|config|opts?|hparams|solver|train|float)$", re.I
)
"""What else may stand in a rate that is made for the size of a batch."""
_TELLING = frozenset({ast.Assign, ast.BinOp, ast.Call, ast.Assert, ast.If})
"""Where it may be said that windows are whole."""


def divides_rate(trees: Iterable[ast.Module], windows: Collection[str]) -> bool:
    """Whether a rate is divided by what counts the batches of a window; `windows` are names it has.

    A rate that is made for the size of one batch is one for as many of them as are summed, unless what is
    called so is the size of a window.
    """
    nodes = [node for tree in trees for node in nodes_in(tree)]
    if any(_divides(node, windows) for node in nodes):
        return True
    return any(map(_follows_batch, nodes)) and not any(_is_window(node, windows) for node in nodes)


def _follows_batch(node: ast.AST) -> bool:
    """`lr = base_lr * batch_size / 256`, `args.lr *= batch_size / 16`, `SGD(given, lr=0.1 * batch_size)`"""
    if isinstance(node, ast.Assign):
        return any(map(_is_rate, node.targets)) and _is_of_batch(node.value)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Mult) and _is_rate(node.target) and _is_of_batch(node.value)
    return (
        isinstance(node, ast.keyword)
        and node.arg is not None
        and bool(_RATE.search(node.arg))
        and _is_of_batch(node.value)
    )


def _is_of_batch(value: ast.expr) -> bool:
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Mult, ast.Div)):
        return False
    names = names_in(value)
    sizes = [name for name in names if _BATCH.search(name)]
    return bool(sizes) and all(_BATCH.search(name) or _OF_RATES.search(name) for name in names)


def _is_window(node: ast.AST, windows: Collection[str]) -> bool:
    """`batch_size = args.batch_size * args.accumulate`"""
    return (
        isinstance(node, ast.Assign)
        and any(_BATCH.search(last_name(target)) for target in node.targets)
        and _speaks_of(node.value, windows)
    )


def keeps_whole(trees: Iterable[ast.Module], windows: Collection[str]) -> bool:
    """Whether batches are counted in whole windows: `len(loader) // k * k`, `n - n % k`, or a program that
    refuses any other number."""
    nodes = [node for tree in trees for node in nodes_in(tree) if type(node) in _TELLING]
    counts = {
        last_name(node.targets[0])
        for node in nodes
        if isinstance(node, ast.Assign) and _counts_windows(node.value, windows)
    }
    return any(_is_whole(node, windows, counts) for node in nodes)


def _counts_windows(node: ast.AST, windows: Collection[str]) -> bool:
    return any(
        isinstance(part, ast.BinOp) and isinstance(part.op, ast.FloorDiv) and _speaks_of(part.right, windows)
        for part in nodes_in(node)
    )


def _is_whole(node: ast.AST, windows: Collection[str], counts: Collection[str]) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            counted = _counts_windows(one, windows) or last_name(one) in counts
            if counted and _speaks_of(other, windows):
                return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return _is_rest(node.right, windows)
    if isinstance(node, ast.Call):
        return _drops_the_rest(node, windows)
    if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)):
        return any(_is_rest(part, windows) for part in nodes_in(node.test))
    return False


def _drops_the_rest(call: ast.Call, windows: Collection[str]) -> bool:
    """`BatchSampler(sampler, batch_size * k, drop_last=True)`"""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    drops = given.get("drop_last")
    if not isinstance(drops, ast.Constant) or drops.value is not True:
        return False
    return any(
        isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) and _speaks_of(part, windows)
        for value in (*call.args, *given.values())
        for part in nodes_in(value)
    )


def _is_rest(node: ast.AST, windows: Collection[str]) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _speaks_of(node.right, windows)


def _divides(node: ast.AST, windows: Collection[str]) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg is not None and bool(_RATE.search(node.arg)) and _by_window(node.value, windows)
    if isinstance(node, ast.Assign):
        return any(map(_is_rate, node.targets)) and _by_window(node.value, windows)
    if isinstance(node, ast.AugAssign):
        by = isinstance(node.op, ast.Div) and _speaks_of(node.value, windows)
        return _is_rate(node.target) and (by or _by_window(node.value, windows))
    if isinstance(node, ast.Dict):
        rates = [value for key, value in zip(node.keys, node.values, strict=True) if _is_named_rate(key)]
        return any(_by_window(value, windows) for value in rates)
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        given = node.args[1:2] if name in words.TORCH_OPTIMIZERS or _FACTORS.match(name) else []
        given += [keyword.value for keyword in node.keywords if _FACTORS.match(name)]
        return any(_by_window(value, windows) for value in given)
    return isinstance(node, ast.BinOp) and _is_rate(node.left) and _by_window(node, windows)


def _by_window(value: ast.expr, windows: Collection[str]) -> bool:
    return any(
        isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div) and _speaks_of(part.right, windows)
        for part in nodes_in(value)
    )


def _speaks_of(node: ast.expr, windows: Collection[str]) -> bool:
    return any(name in windows or words.ACCUMULATION_NAME.search(name) for name in names_in(node))


def _is_rate(target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        return _is_named_rate(target.slice)
    return bool(_RATE.search(last_name(target).lower()))


def _is_named_rate(key: ast.expr | None) -> bool:
    named = key.value if isinstance(key, ast.Constant) else None
    return isinstance(named, str) and bool(_RATE.search(named.lower()))

"""Losses that the project computes in functions and classes of other files: whether they are means."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from gradclinic.static.imports import bindings
from gradclinic.static.project_files import MOST_HOPS, file_of, parsed, version_of
from gradclinic.static.syntax import last_name, names_in, nodes_in
from gradclinic.static.values import Lib
from gradclinic.static.walk import Walk
from gradclinic.static.words import ACCUMULATION_NAME, Pattern

MOST_READ = 12
"""Functions and classes that one loss is computed by."""
_MEANS = Pattern(r"^mean$|(?<!nll)_loss$|^(?:cross_entropy|binary_cross_entropy\w*|kl_div)$|^[A-Z]\w*Loss$")
_OTHERWISE = Pattern(r"^(?:backward|all_reduce|einsum|norm|world_size|no_grad)$|accum|micro_?batch")
"""What may add up, or averages over something else, and what cares for windows itself."""
_OF_A_BATCH = Pattern(r"batch|sample|step|iter|num|count|size|len|weight|^n_|^n$|^k$", re.I)
"""What a mean may be divided by once more, so that it is the mean of something larger."""


def is_mean(walk: Walk, origin: str, node: ast.Call) -> bool | None:
    """Whether a loss that is imported as `origin` is one, asked where there are windows; None if unclear."""
    # `loss_of(outputs, labels, args.accumulate)` may well divide by it.
    if not origin or not walk.survey.guarded or any(map(ACCUMULATION_NAME.search, names_in(node))):
        return None
    return averages(origin, walk.frame.module.path or walk.path) or None


def averages(name: str, path: str, hops: int = MOST_HOPS) -> bool:
    """Whether what the file at `path` knows as `package.module.name` is the mean over its batch, plainly."""
    module, _, last = name.rpartition(".")
    file = file_of(module, path) if module.strip(".") and hops else None
    if file is None:
        return False
    found = _averages(file, *version_of(file), last)
    return averages(found, file, hops - 1) if isinstance(found, str) else found


@lru_cache(maxsize=512)
def _averages(file: str, changed: int, size: int, name: str) -> bool | str:
    """Whether it does, or the name that it is imported by."""
    tree = parsed(file, changed, size)
    if tree is None:
        return False
    defined = {part.name: part for part in tree.body if isinstance(part, (ast.FunctionDef, ast.ClassDef))}
    if name not in defined:
        bound = (bindings(part).get(name) for part in tree.body if isinstance(part, ast.ImportFrom))
        return next((found.name for found in bound if isinstance(found, Lib)), False)
    elsewhere = {
        taken
        for part in tree.body
        if isinstance(part, (ast.Import, ast.ImportFrom))
        for taken, value in bindings(part).items()
        if isinstance(value, Lib) and file_of(value.name.rpartition(".")[0], file) is not None
    }
    waiting, means = [name], False
    for number, one in enumerate(waiting):  # which grows meanwhile
        parts = nodes_in(defined[one])
        names = set(names_in(defined[one]))
        if number == MOST_READ or names & elsewhere or any(map(_OTHERWISE.search, names)):
            return False
        if not all(map(_keeps_a_mean, parts)):
            return False
        means = means or any(map(_MEANS.search, names - defined.keys()))
        waiting += [other for other in names & defined.keys() if other not in waiting]
    return means


def _keeps_a_mean(node: ast.AST) -> bool:
    """Not where samples may be gone over one by one, or the mean is divided."""
    if isinstance(node, (ast.While, ast.GeneratorExp, ast.ListComp)):
        return False
    if isinstance(node, ast.For):
        return last_name(getattr(node.iter, "func", node.iter)) in ("items", "values", "keys")
    if isinstance(node, ast.keyword) and node.arg in ("reduction", "size_average", "reduce"):
        return isinstance(node.value, ast.Constant) and node.value.value in (
            "mean",
            "batchmean",
            "none",
            True,
        )
    if isinstance(node, ast.Call) and last_name(node.func).endswith("sum"):
        return _is_of_each_sample(node)
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Div):
        by = node.right if isinstance(node, ast.BinOp) else node.value
        return not any(map(_OF_A_BATCH.search, names_in(by)))
    return True


def _is_of_each_sample(node: ast.Call) -> bool:
    """`x.sum(dim=1)`, and not over the whole batch."""
    if not isinstance(node.func, ast.Attribute):
        return False
    given = node.args[1:] if last_name(node.func.value) == "torch" else node.args
    named = [keyword.value for keyword in node.keywords if keyword.arg in ("dim", "axis")]
    try:
        dims = [ast.literal_eval(one) for one in (*given, *named)]
    except ValueError:
        return False
    return bool(dims) and not any(dim == 0 or (isinstance(dim, (tuple, list)) and 0 in dim) for dim in dims)

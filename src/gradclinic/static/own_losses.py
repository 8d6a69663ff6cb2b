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

_REDUCES = frozenset({"reduction", "size_average", "reduce"})
"""Options by which losses of torch are told to sum."""
_NO_SUMS = ("mean", "batchmean", "none", True)
MOST_READ = 12
"""Functions and classes that one loss is computed by."""
_MEANS = Pattern(r"^mean$|(?<!nll)_loss$|^(?:cross_entropy|binary_cross_entropy\w*|kl_div)$|^[A-Z]\w*Loss$")
_OTHERWISE = Pattern(r"^(?:backward|all_reduce|einsum|norm|world_size|no_grad)$|accum|micro_?batch")
"""What may add up, or averages over something else, and what cares for windows itself."""
_OF_A_BATCH = Pattern(
    r"batch|sample|step|iter|num|count|(?<!img_)(?<!image_)(?<!grid_)size|len|weight|^n_|^n$|^k$", re.I
)
"""What a mean may be divided by once more, so that it is the mean of something larger."""


def is_mean(walk: Walk, origin: str, node: ast.Call) -> bool | None:
    """Whether a loss that is imported as `origin` is one, asked where there are windows; None if unclear."""
    if not origin or not _may_be_asked(walk, node):
        return None
    return averages(origin, walk.frame.module.path or walk.path) or None


def is_mean_of_class(walk: Walk, cls: ast.ClassDef, node: ast.AST) -> bool | None:
    """The same of a class that is in sight."""
    if not isinstance(node, ast.Call) or not _may_be_asked(walk, node):
        return None
    tree = next((tree for tree in walk.survey.trees if cls in tree.body), None)
    path = walk.frame.module.path or walk.path
    return (tree is not None and _is_made_of_means(tree, path, cls.name)) or None


def _may_be_asked(walk: Walk, node: ast.Call) -> bool:
    """Not where it is told what to do: `loss_of(outputs, labels, args.accumulate)` may well divide by it."""
    if not walk.survey.guarded or any(map(ACCUMULATION_NAME.search, names_in(node))):
        return False
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    told = [value for name, value in given.items() if name in _REDUCES]
    if any(not isinstance(value, ast.Constant) or value.value not in ("mean", True) for value in told):
        return False
    return not any(
        last_name(value) in _REDUCES
        or (isinstance(value, ast.Constant) and (value.value == "sum" or value.value is False))
        for value in node.args
    )


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
    return _is_made_of_means(tree, file, name)


def _is_made_of_means(tree: ast.Module, file: str, name: str) -> bool:
    defined = {part.name: part for part in tree.body if isinstance(part, (ast.FunctionDef, ast.ClassDef))}
    elsewhere = {
        taken
        for part in tree.body
        if isinstance(part, (ast.Import, ast.ImportFrom))
        for taken, value in bindings(part).items()
        if isinstance(value, Lib) and file_of(value.name.rpartition(".")[0], file) is not None
    }
    waiting, means = [name], False
    for number, one in enumerate(waiting):  # which grows meanwhile
        parts = usual_parts(defined[one])
        names = {named for part in parts if (named := _own_name(part))}
        by_hand = means_by_hand(parts)
        if number == MOST_READ or any(map(_OTHERWISE.search, names)) or not _reduces_by_mean(parts):
            return False
        # What a sum over its own batch is of does not matter, if it is divided by that batch.
        if names & elsewhere and not by_hand:
            return False
        if not all(part in by_hand or _keeps_a_mean(part) for part in parts):
            return False
        means = means or bool(by_hand) or any(map(_MEANS.search, names - defined.keys()))
        waiting += [other for other in names & defined.keys() if other not in waiting]
    return means


def _own_name(part: ast.AST) -> str:
    return part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""


def _keeps_a_mean(node: ast.AST) -> bool:
    """Not where samples may be gone over one by one, or the mean is divided."""
    if isinstance(node, (ast.While, ast.GeneratorExp, ast.ListComp)):
        return False
    if isinstance(node, ast.For):
        return last_name(getattr(node.iter, "func", node.iter)) in ("items", "values", "keys")
    if isinstance(node, ast.keyword) and node.arg in _REDUCES:
        if last_name(node.value) in _REDUCES:
            return True  # handed on, as it came in
        return isinstance(node.value, ast.Constant) and node.value.value in _NO_SUMS
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


def _reduces_by_mean(parts: list[ast.AST]) -> bool:
    """Whether a mean is what it gives unless it is told otherwise."""
    for spec in parts:
        if isinstance(spec, ast.arguments):
            names = [*spec.posonlyargs, *spec.args]
            defaults: list[tuple[ast.arg, ast.expr | None]] = [
                *zip(reversed(names), reversed(spec.defaults), strict=False),
                *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
            ]
            for option, default in defaults:
                if option.arg in _REDUCES and not _is_no_sum(default):
                    return False
    return True


def _is_no_sum(default: ast.expr | None) -> bool:
    return isinstance(default, ast.Constant) and default.value in ("mean", True)


def usual_parts(node: ast.AST) -> list[ast.AST]:
    """All that is inside it, without what is for those who ask for a sum."""
    left_out: set[ast.AST] = set()
    for part in nodes_in(node):
        if isinstance(part, (ast.If, ast.IfExp)):
            other = part.orelse if _asks_for(part.test, "mean") else []
            other = part.body if _asks_for(part.test, "sum") else other
            for one in other if isinstance(other, list) else [other]:
                left_out.update(nodes_in(one))
    return [part for part in nodes_in(node) if part not in left_out]


def _asks_for(test: ast.expr, reduction: str) -> bool:
    """`self.reduction == "sum"`, `size_average`"""
    if isinstance(test, ast.Compare):
        wanted = test.comparators[0]
        asks = len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq) and last_name(test.left) in _REDUCES
        return asks and isinstance(wanted, ast.Constant) and wanted.value == reduction
    return reduction == "mean" and last_name(test) == "size_average"


def means_by_hand(parts: list[ast.AST]) -> set[ast.AST]:
    """`loss.sum() / batch_size`, each with its sum, where that is how many samples were given."""
    counts = {
        named.id
        for part in parts
        if isinstance(part, ast.Assign)
        for named in _counting(part.targets[0], part.value)
    }
    found: set[ast.AST] = set()
    for part in parts:
        if not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Div) or not _is_sum(part.left):
            continue
        counted = isinstance(part.right, ast.Name) and part.right.id in counts
        if counted or _counts_samples(part.right):
            found |= {part, part.left}
    return found


def _counting(target: ast.expr, value: ast.expr) -> list[ast.Name]:
    """`n = x.size(0)`, and the first of `n, c = x.shape[:2]`."""
    if isinstance(target, ast.Name) and _counts_samples(value):
        return [target]
    if isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name) and _is_shape(value):
        return [target.elts[0]]
    return []


def _counts_samples(value: ast.expr) -> bool:
    """`x.shape[0]`, `x.size(0)`, `len(x)`"""
    if isinstance(value, ast.Subscript):
        return _is_shape(value.value) and _is_zero(value.slice)
    if not isinstance(value, ast.Call) or len(value.args) != 1:
        return False
    if last_name(value.func) == "size":
        return isinstance(value.func, ast.Attribute) and _is_zero(value.args[0])
    return last_name(value.func) == "len"


def _is_shape(value: ast.expr) -> bool:
    """`x.shape`, `x.size()`, `x.shape[:2]`"""
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        return value.slice.lower is None and _is_shape(value.value)
    if isinstance(value, ast.Call):
        return last_name(value.func) == "size" and not value.args
    return isinstance(value, ast.Attribute) and value.attr == "shape"


def _is_zero(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) is int and value.value == 0


def _is_sum(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and last_name(value.func) == "sum"

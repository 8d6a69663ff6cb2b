"""The terms of an objective: named by the case, or found in the sum that an unmodified loss is."""

from __future__ import annotations

import ast
import linecache
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradclinic.case import WHOLE, Evaluation
from gradclinic.compile.gradients import term_gradients
from gradclinic.facts import Location
from gradclinic.probes._where import shown_path

_SUMS = ("AddBackward0", "SubBackward0")
_SCALINGS = ("MulBackward0", "DivBackward0", "NegBackward0", "ToCopyBackward0", "ViewBackward0")
_NOT_THE_USERS = ("/torch/", "/gradclinic/", "<gradclinic")
_FRAME = re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


@dataclass(frozen=True)
class Part:
    """A summand of the objective, as an edge of its graph."""

    name: str
    edge: GradientEdge
    where: Location | None


Gradients = dict[str, dict[str, Tensor | None]]


def objective_gradients(
    evaluation: Evaluation, parameters: Mapping[str, Tensor]
) -> tuple[Gradients, dict[str, Location | None]]:
    """Each weighted term's gradient, and where found terms are summed.

    One backward per term; one more, down to the summands only, for terms that had to be found.
    """
    if list(evaluation.terms) != [WHOLE]:
        return term_gradients(evaluation.weighted, parameters), {}
    parts = split(evaluation.total)
    if len(parts) < 2:
        return term_gradients(evaluation.weighted, parameters), {}
    # What the backward of the whole sends to each summand: its weight and its sign.
    arriving = torch.autograd.grad(evaluation.total, [part.edge for part in parts], retain_graph=True)
    found: Gradients = {}
    for part, weight in zip(parts, arriving, strict=True):
        grads = torch.autograd.grad(
            part.edge, list(parameters.values()), weight, retain_graph=True, allow_unused=True
        )
        found[part.name] = dict(zip(parameters, grads, strict=True))
    return found, {part.name: part.where for part in parts}


@contextmanager
def lines_remembered() -> Iterator[None]:
    """Every node of graphs built inside knows the line that made it."""
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        yield


def split(objective: Tensor) -> list[Part]:
    """The summands of the top-level sum of scalars; a single one where it is no sum."""
    if objective.grad_fn is None:
        return []
    edges: dict[tuple[Any, int], str] = {}
    _collect(objective.grad_fn, 0, edges, "")
    names: set[str] = set()
    parts = []
    for index, ((node, number), written) in enumerate(edges.items(), 1):
        name = written if written and written not in names else f"term {index}"
        names.add(name)
        parts.append(Part(name, GradientEdge(node, number), _location(node)))
    return parts


def _collect(node: Any, number: int, edges: dict[tuple[Any, int], str], written: str) -> None:
    """Walk down sums, and scalings of sums, as long as the value is a scalar."""
    names = _operands(node, written) if node.name() in _SUMS and _is_scalar(node) else None
    if names is not None:
        for (child, n), name in zip(node.next_functions, names, strict=True):
            if child is not None:
                _collect(child, n, edges, name)
        return
    inner = _scaled(node)
    if inner is not None:
        _collect(*inner, edges, written)
    else:
        edges.setdefault((node, number), written)


def _scaled(node: Any) -> tuple[Any, int] | None:
    """The sum that a chain of constant factors is applied to, if it is one."""
    number = 0
    while node.name() in _SCALINGS and _is_scalar(node):
        children = [(child, n) for child, n in node.next_functions if child is not None]
        if len(children) != 1:
            return None
        node, number = children[0]
        if node.name() in _SUMS and _is_scalar(node):
            return node, number
    return None


def _is_scalar(node: Any) -> bool:
    shapes = [meta.shape for meta in node._input_metadata]
    return len(shapes) == 1 and math.prod(shapes[0]) == 1


def _location(node: Any) -> Location | None:
    """The user's line that made a node, where lines were remembered."""
    for text in reversed(node.metadata.get("traceback_", ())):
        frame = _FRAME.search(text)
        if frame and not any(part in frame["path"] for part in _NOT_THE_USERS):
            return Location(shown_path(frame["path"]), int(frame["line"]), function=frame["function"])
    return None


def _operands(node: Any, written: str) -> tuple[str, str] | None:
    """What the user calls the two sides of a sum; None when the line holds none, as `sum(…)` does."""
    where = _location(node)
    line = linecache.getline(where.path, where.line).strip() if where else ""
    if not line:
        return "", ""
    try:
        statement: Any = ast.parse(line).body[0]
    except SyntaxError:
        return "", ""
    if isinstance(statement, ast.AugAssign):
        return written or ast.unparse(statement.target), _called(statement.value)
    sums: list[Any] = [each for each in ast.walk(statement) if _is_sum(each)]
    for each in sums:
        # Of `a + b + c` the outer sum is `(a + b) + c`; `written` says which one this is.
        if not written or ast.unparse(each) == written:
            left, right = each.left, each.right
            return ast.unparse(left) if _is_sum(left) else _called(left), _called(right)
    return ("", "") if sums else None


def _is_sum(node: Any) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub))


def _called(node: ast.expr | None) -> str:
    """`force_loss` of `0.1 * force_loss`: the part that is no number."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        sides = [side for side in (node.left, node.right) if not isinstance(side, ast.Constant)]
        if len(sides) == 1:
            return _called(sides[0])
    return "" if node is None else ast.unparse(node)

"""Products of log-probabilities and rewards in the objective, and the sign they enter it with."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gradclinic.facts.location import Location
from gradclinic.facts.policy import PolicyTerm
from gradclinic.runtime import graph
from gradclinic.runtime.actors import Actors
from gradclinic.runtime.names import loops_around, statement_at
from gradclinic.runtime.places import Places
from gradclinic.runtime.statistics.numerics import operation, saved

Node = Any
_MOST_NODES = 300
_HANDS_ON = frozenset(
    [
        "mean",
        "sum",
        "add",
        "view",
        "reshape_alias",
        "unsafe_view",
        "squeeze",
        "unsqueeze",
        "select",
        "slice",
        "stack",
        "cat",
        "minimum",
        "maximum",
        "min",
        "max",
        "clone",
        "alias",
        "to_copy",
        "expand",
        "t",
        "transpose",
    ]
)
_LIKELIHOOD = re.compile(r"log_?p(rob|i|_|\b|s\b)|log_?likelihood|\bratios?\b|\blps?\b", re.IGNORECASE)
_EARNED = re.compile(
    r"\b\w*(adv|advantages?|rewards?|returns?|gae|td_error)s?\b|\b(R|G|Gt|ret|rets|rew|rews)\b"
)
_SPENT = re.compile(r"cost|penalt|loss|regret|neg|distance|error(?<!td_error)", re.IGNORECASE)


class Policies:
    def __init__(self, actors: Actors, places: Places, lines: Mapping[tuple[str, int], Location]) -> None:
        self._actors = actors
        self._places = places
        self._lines = lines
        self._terms: dict[tuple[Location, str], Counter[int]] = {}

    def objective(self, root: Node | None) -> None:
        signs: dict[Location, tuple[bool, int]] = {}
        for node, sign, single in _products(root):
            where = self._lines.get(graph.key_of(node))
            # One line may hold a weight for a term as well: `-(log_prob * reward).mean() - 0.01 * entropy`.
            if where is not None and (where not in signs or (signs[where][0] and not single)):
                signs[where] = (single, sign)
        groups = [group for _, optimizer in self._actors.optimizers() for group in optimizer.param_groups]
        climbs = any(group.get("maximize") for group in groups)
        for where, (_, sign) in signs.items():
            found = _weighted(self._places.file(where), where.line)
            if found is not None:
                turned = -1 if climbs else 1
                self._terms.setdefault((where, found[0]), Counter())[turned * sign * found[1]] += 1

    def found(self) -> Iterator[PolicyTerm]:
        for (where, product), signs in self._terms.items():
            if len(signs) == 1:
                (sign, seen), *_ = signs.items()
                yield PolicyTerm(where, product, sign, seen)


def _products(root: Node | None) -> Iterator[tuple[Node, int, bool]]:
    """Products with something that has no graph, as far as sums and factors lead, with their signs, and
    whether that something is a single number."""
    todo = [(root, 1)] if root is not None else []
    for _ in range(_MOST_NODES):
        if not todo:
            return
        node, sign = todo.pop()
        kind = operation(node)
        following = [one for one, _ in node.next_functions]
        if kind in ("mul", "div"):
            factor = saved(node, "other") if following[-1] is None or len(following) == 1 else None
            if kind == "mul" and None in following:
                yield node, sign, factor is not None and factor.numel() == 1
            if factor is not None and factor.numel() == 1 and following[0] is not None:
                todo.append((following[0], sign if float(factor) > 0 else -sign))
        elif kind in ("neg", "rsub"):
            todo.extend((one, -sign) for one in following if one is not None)
        elif kind == "sub":
            todo.extend((one, -sign if i else sign) for i, one in enumerate(following) if one is not None)
        elif kind in _HANDS_ON:
            todo.extend((one, sign) for one in following if one is not None)


def _weighted(file: str, line: int) -> tuple[str, int] | None:
    """The product on this line that weighs a likelihood by what it earned, and its own sign."""
    statement = statement_at(file, line)
    drawn = {} if statement is None else _drawn_from([*loops_around(file, line), *ast.walk(statement)])
    for node in ast.walk(statement) if statement is not None else ():
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            continue
        for likelihood, earned in ((node.left, node.right), (node.right, node.left)):
            (likely, one), (gained, other) = _unsigned(likelihood, drawn), _unsigned(earned, drawn)
            if _LIKELIHOOD.search(ast.unparse(likely)) and _is_earned(gained):
                return ast.unparse(node), one * other
    return None


def _drawn_from(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """What the names of a loop are taken out of: `g` of `returns` in `for p, g in zip(ps, returns)`."""
    found: dict[str, ast.expr] = {}
    for node in nodes:
        if not isinstance(node, ast.For | ast.comprehension):
            continue
        names = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        sources = [node.iter]
        if isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "zip":
            sources = node.iter.args
        if len(names) == len(sources):
            found |= {n.id: one for n, one in zip(names, sources, strict=True) if isinstance(n, ast.Name)}
    return found


def _unsigned(node: ast.expr, drawn: Mapping[str, ast.expr]) -> tuple[ast.expr, int]:
    """What is behind a minus, and one level of looping."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1
    known = isinstance(node, ast.Name) and not (_LIKELIHOOD.search(node.id) or _EARNED.search(node.id))
    return drawn.get(node.id, node) if isinstance(node, ast.Name) and known else node, sign


def _is_earned(node: ast.expr) -> bool:
    """`rewards - baseline` is; `baseline - rewards` and anything that tells of a cost is not."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        node = node.left
    text = ast.unparse(node)
    unsure = (
        _LIKELIHOOD.search(text)
        or _SPENT.search(text)
        or any(isinstance(part, ast.USub | ast.Sub) for part in ast.walk(node))
    )
    return _EARNED.search(text) is not None and not unsure

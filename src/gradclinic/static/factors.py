"""The unit that the factor of a LambdaLR counts in: `lambda epoch: 1 - epoch / epochs`."""

from __future__ import annotations

import ast
import re

from gradclinic.static import words
from gradclinic.static.syntax import last_name, names_in, nodes_in
from gradclinic.static.values import Frame, Func, Num, Value

_OF_SHORTER_TIMES = words.Pattern(r"iter|step|batch|loader|^len$|update|tick|per_", re.I)
_CONSTANTS = frozenset({"math", "np", "numpy", "torch", "pi", "float", "int", "min", "max"})


def factor_unit(function: Value | None) -> str | None:
    """`epoch` where what the factor is asked for is divided by the number of epochs; None for all else."""
    if not isinstance(function, Func) or len(function.node.args.args) != 1:
        return None
    asked = function.node.args.args[0].arg
    body = function.node.body if isinstance(function.node.body, list) else [function.node.body]
    parts = [part for root in body for part in nodes_in(root)]
    others = {name for root in body for name in names_in(root)} - {asked}
    if any(_OF_SHORTER_TIMES.search(name) for name in others):
        return None
    shares = [part for part in parts if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div)]
    counted = [
        share.right
        for share in shares
        if asked in (of := set(names_in(share.left))) and of <= _CONSTANTS | {asked}
    ]
    return "epoch" if counted and all(_is_all_epochs(one, function.frame) for one in counted) else None


def _is_all_epochs(number: ast.expr, frame: Frame | None) -> bool:
    """`epochs`, `args.epochs`: by its name, and, where it is seen, by what it was made of."""
    if not isinstance(number, (ast.Name, ast.Attribute)) or not words.EPOCH_NAME.search(last_name(number)):
        return False
    while frame is not None and isinstance(number, ast.Name):
        known = frame.vars.get(number.id)
        if known is not None:
            return isinstance(known, Num) and known.units <= {"epoch"}
        frame = frame.parent
    return True

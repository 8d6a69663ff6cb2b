"""What the source says of a schedule's length: the unit it is written in, and whether it may go unused."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from itertools import islice
from types import FrameType

from gradclinic.runtime.names import all_statements, statement_at

_LENGTHS = ("T_max", "total_steps", "total_iters", "num_training_steps")
_EPOCHS = re.compile(r"(^|_)epochs?$", re.IGNORECASE)
_STOPS = re.compile(r"patien|early|stop|wait|stall|no_improve|bad_epochs|counter|converged", re.IGNORECASE)
_DEEPEST = 6


def written_in_epochs(frames: Iterable[FrameType]) -> bool:
    """`T_max=args.epochs`, but not `T_max=epochs * len(loader)`."""
    for frame in islice(frames, _DEEPEST):
        statement = statement_at(frame.f_code.co_filename, frame.f_lineno)
        lengths = [_length(node) for node in _calls(statement)]
        if any(length is not None and _EPOCHS.search(_last_name(length)) for length in lengths):
            return True
    return False


def may_stop_early(filename: str) -> bool:
    """A loop of this file is left when something no longer improves."""
    return any(
        isinstance(inner, ast.Break) and _STOPS.search(ast.unparse(one))
        for one in all_statements(filename)
        if isinstance(one, ast.If)
        for inner in one.body
    )


def _calls(statement: ast.stmt | None) -> list[ast.Call]:
    return [node for node in ast.walk(statement) if isinstance(node, ast.Call)] if statement else []


def _length(call: ast.Call) -> ast.expr | None:
    named = (keyword.value for keyword in call.keywords if keyword.arg in _LENGTHS)
    called = ast.unparse(call.func).rpartition(".")[2]
    positional = call.args[1] if called == "CosineAnnealingLR" and len(call.args) > 1 else None
    return next(named, positional)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return node.id if isinstance(node, ast.Name) else ""

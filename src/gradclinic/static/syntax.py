"""Small questions to the syntax tree."""

from __future__ import annotations

import ast
import re
from typing import TypeGuard

from gradclinic.static import words

_PLAIN_FIELDS = {
    ast.AST: words.names(
        "ctx op ops id attr arg name asname module level kind simple is_async conversion type_comment rest "
        "kwd_attrs tag str"
    ),
    ast.Constant: frozenset({"value", "kind"}),
    ast.MatchSingleton: frozenset({"value"}),
}
"""Fields that hold no nodes, or nodes that have no parts."""


class _PartFields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each kind of node that hold nodes with parts of their own.

    Load, Add and their like are one object for every tree of the process: what other tools hang on them
    (a parent, say) leads out of this tree.
    """

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        plain = _PLAIN_FIELDS.get(kind, _PLAIN_FIELDS[ast.AST])
        self[kind] = tuple(name for name in kind._fields if name not in plain)
        return self[kind]


PART_FIELDS = _PartFields()
_MIXED = frozenset({"keys", "kw_defaults", "names"})
"""Lists in which there may be something else than nodes."""
_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")
_MODELS = words.Pattern(r"models?(_parts)?$|(^|_)net(work)?s$", re.I)
_TORCH_METHODS = words.names("train eval step zero_grad backward forward state_dict load_state_dict update")


def is_window(loop: ast.AST) -> bool:
    """`for _ in range(accumulation_steps)`: the micro-batches of one update."""
    return isinstance(loop, ast.For) and bool(words.ACCUMULATION_NAME.search(" ".join(names_in(loop.iter))))


def is_count(part: ast.AST) -> TypeGuard[ast.BinOp]:
    """`(i + 1) % k`."""
    return isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod)


def asks_at_zero(test: ast.expr) -> bool:
    """`i % k == 0` or `not i % k`, of a count as it is: true of the first one."""
    for part in nodes_in(test):
        asked: ast.AST | None = None
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            asked = part.operand
        elif isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Eq):
            zero = part.comparators[0]
            asked = part.left if isinstance(zero, ast.Constant) and zero.value == 0 else None
        if asked is not None and is_count(asked) and isinstance(asked.left, (ast.Name, ast.Attribute)):
            return True
    return False


def reached_at(test: ast.expr) -> set[str]:
    """The names that are asked whether they have come up to something: `seen >= limit`, `limit == seen`."""
    found: set[str] = set()
    for part in nodes_in(test):
        if not isinstance(part, ast.Compare):
            continue
        sides: list[ast.expr] = [part.left] if isinstance(part.ops[0], (ast.GtE, ast.Gt, ast.Eq)) else []
        sides += part.comparators[:1] if isinstance(part.ops[0], (ast.LtE, ast.Lt, ast.Eq)) else []
        found |= {last_name(side) for side in sides if isinstance(side, (ast.Name, ast.Attribute))}
    return found


def set_to_zero(body: list[ast.stmt]) -> list[ast.expr]:
    zero = [
        part
        for statement in body
        for part in nodes_in(statement)
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant) and part.value.value == 0
    ]
    return [target for part in zero for target in part.targets]


def is_listed(loop: ast.AST) -> bool:
    """`for phase in ["train", "val"]`: the parts of one epoch."""
    items = loop.iter if isinstance(loop, ast.For) else None
    return isinstance(items, (ast.List, ast.Tuple)) and all(isinstance(e, ast.Constant) for e in items.elts)


def last_name(node: ast.AST) -> str:
    """`zero_grad` of `self.opt.zero_grad`, `opt` of `opt[0]`: what a thing is called at its end."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            return node.attr
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, (ast.Starred, ast.Await)):
            node = node.value
        else:
            return ""


def children(node: ast.AST) -> list[ast.AST]:
    """What `ast.iter_child_nodes` gives and has parts of its own, in less than half of the time."""
    found: list[ast.AST] = []
    for name in PART_FIELDS[type(node)]:
        value = getattr(node, name)
        if type(value) is list:
            found += value if name not in _MIXED else [item for item in value if isinstance(item, ast.AST)]
        elif value is not None:
            found.append(value)
    return found


def nodes_in(node: ast.AST) -> list[ast.AST]:
    """The node and all that is inside it, outermost first: `ast.walk` without Load, Add and their like."""
    found = [node]
    for part in found:  # which grows meanwhile
        # As `children` does, which would be called more than any other function.
        for name in PART_FIELDS[type(part)]:
            value = getattr(part, name)
            if type(value) is list:
                found += value if name not in _MIXED else [one for one in value if isinstance(one, ast.AST)]
            elif value is not None:
                found.append(value)
    return found


def statements_in(node: ast.AST) -> list[ast.stmt]:
    """The statements among `nodes_in`, in the same order, without a look at what they compute."""
    found = [node]
    for part in found:  # which grows meanwhile
        if not isinstance(part, ast.expr):  # of which some have a body, too
            for name in _BLOCKS:
                found += getattr(part, name, ())
    return [part for part in found if isinstance(part, ast.stmt)]


def names_in(node: ast.AST) -> list[str]:
    """All names and attributes, those of the outermost parts first."""
    found: list[str] = []
    parts = [node]
    for part in parts:  # which grows meanwhile
        if isinstance(part, ast.Name):
            found.append(part.id)
        elif isinstance(part, ast.Attribute):
            found.append(part.attr)
            parts.append(part.value)
        elif not isinstance(part, ast.Constant):
            parts += children(part)
    return found


def picks_some(loop: ast.For | ast.AsyncFor) -> bool:
    """`for name, p in ...: if "head" in name:`, but not one that asks for nothing but a gradient."""
    targets = set(names_in(loop.target))
    tests = [part.test for part in nodes_in(loop) if isinstance(part, ast.If)]
    return any(
        isinstance(part, ast.Name) and part.id in targets and not _asks_for_gradient(test, part)
        for test in tests
        for part in nodes_in(test)
    )


def _asks_for_gradient(test: ast.expr, parameter: ast.Name) -> bool:
    return any(
        isinstance(part, ast.Attribute) and part.value is parameter and part.attr in ("grad", "requires_grad")
        for part in nodes_in(test)
    )


def is_left_open(function: ast.AST) -> bool:
    """A method that only says it must be overridden: what it will do is not in sight."""
    body = function.body if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    described = body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return len(body) == 1 + bool(described) and isinstance(body[-1], ast.Raise)


def pairs_up(values: ast.Tuple, targets: ast.Tuple) -> bool:
    """Whether each of the targets takes one of the values."""
    return len(values.elts) == len(targets.elts) and not any(
        isinstance(part, ast.Starred) for part in (*values.elts, *targets.elts)
    )


def torch_method(node: ast.Attribute) -> bool:
    """`self.model.train` is torch's, whatever the file's own `train` may do."""
    return node.attr in _TORCH_METHODS and _is_torchs(last_name(node.value))


def _is_torchs(receiver: str) -> bool:
    return any(
        pattern.search(receiver)
        for pattern in (words.MODEL_NAME, words.OPTIMIZER_NAME, words.SCHEDULE_NAME, words.SCALER_NAME)
    ) and not words.DRIVER_NAME.search(receiver)


def bound_by_import(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The names an import gives a value to."""
    return [alias.asname or alias.name.partition(".")[0] for alias in node.names]


def goes_over_models(loop: ast.For) -> bool:
    """By the name of what it goes over: `self.model_parts`, `nets`, `models.values()`."""
    return any(_MODELS.search(name) for name in names_in(loop.iter))


def reached_by(node: ast.expr) -> set[str]:
    """What it is known by: `clear`, `.clear` of something, both of two that are assigned at once."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return {name for part in node.elts for name in reached_by(part)}
    if isinstance(node, ast.Attribute):
        return {f".{node.attr}"}
    return {node.id} if isinstance(node, ast.Name) else set()


def targets_of(node: ast.stmt) -> list[ast.expr]:
    """What a statement assigns to; a method call may change what it is called on."""
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        return [node.target]
    if isinstance(node, ast.Delete):
        return node.targets
    return _receivers(node.value) if isinstance(node, ast.Expr) else []


def _receivers(node: ast.expr) -> list[ast.expr]:
    """What methods are called on, in `held.append(x) if x else None` too."""
    if isinstance(node, ast.Call):
        return [node.func.value] if isinstance(node.func, ast.Attribute) else []
    if isinstance(node, ast.IfExp):
        return [*_receivers(node.body), *_receivers(node.orelse)]
    if isinstance(node, ast.BoolOp):
        return [receiver for value in node.values for receiver in _receivers(value)]
    return []


def unfreezes(node: ast.Assign | ast.Call) -> bool:
    """`p.requires_grad = True`, `part.requires_grad_()`, `unfreeze(part)`: anything but a plain False."""
    if isinstance(node, ast.Assign):
        return not (isinstance(node.value, ast.Constant) and node.value.value is False)
    called = last_name(node.func)
    if called != "requires_grad_":
        return "unfreeze" in called.lower()
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    return not (len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False)


def command_line_default(node: ast.Call) -> tuple[str, float] | None:
    """`parser.add_argument("--weight-decay", default=5e-4)` -> `("weight_decay", 5e-4)`."""
    if last_name(node.func) != "add_argument":
        return None
    names = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    defaults = [keyword.value for keyword in node.keywords if keyword.arg == "default"]
    if not names or not defaults or not isinstance(defaults[0], ast.Constant):
        return None
    value = defaults[0].value
    longest = max(names, key=len).lstrip("-").replace("-", "_")
    return (longest, float(value)) if isinstance(value, (int, float)) else None


def imports_ignite(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] == "ignite"
    return isinstance(node, ast.Import) and any(a.name.partition(".")[0] == "ignite" for a in node.names)


def is_until(loop: ast.AST) -> bool:
    """`while not done`, which something tells to end that is not counted."""
    return isinstance(loop, ast.While) and any(
        isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)
        for part in (loop.test, *children(loop.test))
    )


def most_items(loop: ast.AST, call: ast.AST) -> int | None:
    """How many times a loop over what is written out goes around: `for model in (one, other)`; None where the
    call is one on what it goes over: `for kept in (losses, scores): kept.append(...)`."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return None
    owner = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    if owner is not None and not set(names_in(loop.target)).isdisjoint(names_in(owner)):
        return None
    over = loop.iter
    while isinstance(over, ast.Call) and last_name(over.func) in ("zip", "enumerate") and over.args:
        over = over.args[0]
    return len(over.elts) if isinstance(over, (ast.Tuple, ast.List)) else None

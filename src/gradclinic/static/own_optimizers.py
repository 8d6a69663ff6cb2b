"""Optimizers that a project has written itself, on top of torch's own class."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TypeAlias

from gradclinic.facts import ActorKind
from gradclinic.static import words
from gradclinic.static.held import models_in, optimizers_in
from gradclinic.static.opaque import build
from gradclinic.static.syntax import last_name, names_in, nodes_in
from gradclinic.static.values import NOTHING, ActorRef, ClassDef, FunctionNode
from gradclinic.static.walk import Arguments, Walk

_DOES_MORE = frozenset({"zero_grad", "backward", "unscale_", "zero_", "fill_", "_foreach_zero_"})
"""Whatever is filled with zeros: a gradient may go by any name."""
Functions: TypeAlias = Mapping[str, list[FunctionNode]]


def own_optimizer(walk: Walk, cls: ClassDef, args: Arguments, node: ast.AST) -> ActorRef | None:
    """The optimizer that an instance of `cls` is, if its step does what a step does and no more."""
    if not any(map(_of_torch, cls.outside_bases())):
        return None
    if not all(_merely_steps(one, walk.survey.functions) for one in in_sight(cls)):
        return None
    if optimizers_in(args.all()):
        return None  # another one in a coat: who clears that one clears this
    given = args.get(0, "params")
    of = models_in([given]) if given is not None else None
    return build(walk, ActorKind.OPTIMIZER, cls.node.name, node, of=of or NOTHING, attrs={"torch": False})


def _of_torch(base: str) -> bool:
    last = base.rpartition(".")[2]
    return base.startswith("torch.optim") and (last == "Optimizer" or last in words.TORCH_OPTIMIZERS)


def in_sight(cls: ClassDef) -> list[ClassDef]:
    return [cls, *(c for base in cls.bases if isinstance(base, ClassDef) for c in in_sight(base))]


def _merely_steps(cls: ClassDef, functions: Functions) -> bool:
    """Whether nothing in the class clears gradients or goes backward."""
    parts = nodes_in(cls.node)
    filled = {target for part in parts if isinstance(part, ast.If) for target in _filled_in(part)}
    return "zero_grad" not in cls.attrs and not any(
        _does_more(part, functions) for part in parts if part not in filled
    )


def _filled_in(node: ast.If) -> list[ast.AST]:
    """`if p.grad is None: p.grad = torch.zeros_like(p)`, for parameters that took no part."""
    match node.test:
        case ast.Compare(ast.Attribute(attr="grad"), [ast.Is()], [ast.Constant(None)]):
            return [target for part in node.body if isinstance(part, ast.Assign) for target in part.targets]
    return []


def _does_more(part: ast.AST, functions: Functions) -> bool:
    if _clears(part):
        return True
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Name):
        return False
    # A helper that is given gradients may clear them.
    given = any("grad" in name for name in _given(part))
    return given and not _merely_computes(part.func.id, functions, set())


def _clears(part: ast.AST) -> bool:
    if isinstance(part, ast.Attribute):
        return part.attr in _DOES_MORE or (part.attr == "grad" and not isinstance(part.ctx, ast.Load))
    return (
        isinstance(part, ast.Call)
        and last_name(part.func) == "mul_"
        and any(isinstance(factor, ast.Constant) and not factor.value for factor in part.args)
    )


def _merely_computes(helper: str, functions: Functions, asked: set[str]) -> bool:
    """Whether what is called so is in sight, with all that it calls, and clears nothing it is given."""
    if helper in words.PYTHONS_OWN or helper in asked:
        return True
    asked.add(helper)
    found = functions.get(helper, ())
    return bool(found) and all(
        not _clears(part)
        and (
            not isinstance(part, ast.Call)
            or not isinstance(part.func, ast.Name)
            or _merely_computes(part.func.id, functions, asked)
        )
        for node in found
        for part in nodes_in(node)
    )


def _given(call: ast.Call) -> list[str]:
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return [name for value in values for name in names_in(value)]

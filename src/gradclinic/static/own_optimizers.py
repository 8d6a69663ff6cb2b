"""Optimizers that a project has written itself, on top of torch's own class."""

from __future__ import annotations

import ast
import builtins

from gradclinic.facts import ActorKind
from gradclinic.static import words
from gradclinic.static.opaque import build, models_in, optimizers_in
from gradclinic.static.syntax import last_name, names_in
from gradclinic.static.values import NOTHING, ActorRef, ClassDef
from gradclinic.static.walk import Arguments, Walk

_DOES_MORE = frozenset({"zero_grad", "backward", "unscale_", "zero_", "fill_", "_foreach_zero_"})
"""Whatever is filled with zeros: a gradient may go by any name."""
_PYTHONS_OWN = frozenset(dir(builtins)) - {"setattr", "delattr", "exec", "eval"}


def own_optimizer(walk: Walk, cls: ClassDef, args: Arguments, node: ast.AST) -> ActorRef | None:
    """The optimizer that an instance of `cls` is, if its step does what a step does and no more."""
    if not any(map(_of_torch, cls.outside_bases())) or not all(map(_merely_steps, _in_sight(cls))):
        return None
    if optimizers_in(args.all()):
        return None  # another one in a coat: who clears that one clears this
    given = args.get(0, "params")
    of = models_in([given]) if given is not None else None
    return build(walk, ActorKind.OPTIMIZER, cls.node.name, node, of=of or NOTHING, attrs={"torch": False})


def _of_torch(base: str) -> bool:
    last = base.rpartition(".")[2]
    return base.startswith("torch.optim") and (last == "Optimizer" or last in words.TORCH_OPTIMIZERS)


def _in_sight(cls: ClassDef) -> list[ClassDef]:
    return [cls, *(c for base in cls.bases if isinstance(base, ClassDef) for c in _in_sight(base))]


def _merely_steps(cls: ClassDef) -> bool:
    """Whether nothing in the class clears gradients or goes backward."""
    return "zero_grad" not in cls.attrs and not any(map(_does_more, ast.walk(cls.node)))


def _does_more(part: ast.AST) -> bool:
    if isinstance(part, ast.Attribute):
        return part.attr in _DOES_MORE or (part.attr == "grad" and not isinstance(part.ctx, ast.Load))
    if not isinstance(part, ast.Call):
        return False
    if isinstance(part.func, ast.Name):  # a helper that is given gradients may clear them
        return part.func.id not in _PYTHONS_OWN and any("grad" in name for name in _given(part))
    return last_name(part.func) == "mul_" and any(
        isinstance(factor, ast.Constant) and not factor.value for factor in part.args
    )


def _given(call: ast.Call) -> list[str]:
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return [name for value in values for name in names_in(value)]

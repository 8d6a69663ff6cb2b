"""What is gone over to be judged: data that nothing is trained on, by the names that are given to it."""

from __future__ import annotations

import ast
import re

from gradclinic.static import words
from gradclinic.static.syntax import last_name, names_in, nodes_in
from gradclinic.static.values import Model, Stream, Unknown
from gradclinic.static.walk import Walk

_WORD = re.compile(r"\w+")
_ON_PURPOSE = words.Pattern(
    r"mc_|monte|uncertain|(enabl|activat|appl|keep|us|with|turn_on|time|mc)(e|y|ing)?_?dropout|bayes|update_bn|calibrat|"
    r"dropout_?(on$|sampl|pass|test|eval|pred|infer)|(^|_)swa(g?$|_)|ensemble",
    re.I,
)
_DROPOUT = words.Pattern(r"dropout\w*$", re.I)
_LOOKED_FOR = frozenset({"modules", "named_modules", "children", "isinstance", "apply"})


def is_random_on_purpose(named: frozenset[str] | set[str]) -> bool:
    """`enable_dropout(model)`, `if isinstance(m, nn.Dropout): m.train()`; not what a model is made with."""
    if any(map(_ON_PURPOSE.search, named)):
        return True
    return not _LOOKED_FOR.isdisjoint(named) and any(map(_DROPOUT.match, named))


def judges_at_once(walk: Walk, model: Model, *, given: bool) -> bool:
    """`out = model(graph)` in a function called `test` that computes an accuracy, or of what is `given`
    as held out, where an accuracy is spoken of."""
    around = walk.active[-1] if walk.active else walk.loops[-1][2] if walk.loops else None
    if around is None:
        return False
    named, set_at = names_of(walk, around), model.mode.set_at
    if is_random_on_purpose(named):
        return False
    if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)) and words.EVALUATES.match(around.name):
        set_here = set_at is not None and set_at.function == walk.frame.qualname
        return not set_here and any(
            words.MEASURES.search(name) or words.MEASURES_HELD_OUT.search(name) for name in named
        )
    return given and any(map(words.TAKES_ACCURACY.search, named))


def over_held_out_data(walk: Walk) -> bool:
    """`for x, y in test_loader`, or whatever a function goes over that is called `validate`."""
    loop = walk.sweeps[-1]
    over = loop.test if isinstance(loop, ast.While) else getattr(loop, "iter", loop)
    constants = (part.value for part in ast.walk(over) if isinstance(part, ast.Constant))
    written = [value for value in constants if isinstance(value, str)]  # `loaders["val"]`
    written += [name for part in names_in(over) for name in _given_as(walk, part)]
    written += _taken_by_number(loop)
    return any(words.HELD_OUT.search(name) for name in (*names_in(over), *written)) or any(
        words.EVALUATES.match(node.name)
        for node in walk.active
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )


def speaks_of_held_out_data(walk: Walk) -> bool:
    """Whether the function, or the loop of a script, has names for it or for what is measured on it."""
    around = walk.active[-1] if walk.active else walk.loops[-1][2] if walk.loops else None
    return around is not None and any(
        words.HELD_OUT.search(name) or words.TAKES_ACCURACY.search(name) for name in names_of(walk, around)
    )


def _taken_by_number(loop: ast.AST) -> list[str]:
    """`for i in range(users): x, y = test_x[i], test_y[i]` goes over what it asks for by its number."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return []
    if not isinstance(loop.iter, ast.Call) or last_name(loop.iter.func) != "range":
        return []
    taken = [
        last_name(part.value)
        for part in nodes_in(loop)
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load)
        if loop.target.id in names_in(part.slice)
    ]
    return [name for name in taken if not words.MEASURES.search(name)]  # `test_accuracy[epoch]` is none of it


def _given_as(walk: Walk, parameter: str) -> list[str]:
    """What the caller calls it that is gone over: `accuracy_of(model, test_loader)`."""
    value = walk.frame.vars.get(parameter)
    return _WORD.findall(value.path) if isinstance(value, (Stream, Unknown)) else []


def names_of(walk: Walk, node: ast.AST) -> frozenset[str]:
    known = walk.survey.names.get(node)
    if known is None:
        known = walk.survey.names[node] = _names_of(node)
    return known


def _names_of(node: ast.AST) -> frozenset[str]:
    """`torch.autograd.Variable(x)` of the first years asks for no gradient; `volatile=True` even said so."""
    found = frozenset(names_in(node))
    if "Variable" not in found:
        return found
    if any(isinstance(part, ast.keyword) and part.arg == "volatile" for part in nodes_in(node)):
        found |= {"volatile"}
    return found if found & {"grad", "functional"} else found - {"autograd"}

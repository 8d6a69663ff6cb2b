"""What happens to parameters that an optimizer may hold: they are frozen, or others take their place."""

from __future__ import annotations

import ast

from gradclinic.facts import EventKind
from gradclinic.static.conditions import truth
from gradclinic.static.values import Frame, Func, Instance, Keys, Model, Params, Value, overlap
from gradclinic.static.walk import Walk


def freeze(walk: Walk, of: Value, requires: Value, node: ast.AST) -> None:
    """`p.requires_grad = False` and its like; what is made to require a gradient again is never judged."""
    keys = of.models if isinstance(of, Params) else of.whole() if isinstance(of, Model) else None
    if not keys or truth(requires) is not False or walk.survey.unfreezes:
        return
    attrs: dict[str, object] = {} if walk.unsure else {"keys": keys}
    walk.emit(EventKind.FREEZE, node, models=keys, attrs=attrs)


def put_in(walk: Walk, model: Model, part: str, value: Value, node: ast.expr) -> None:
    """`model.head = nn.Linear(...)`: a new part, of which an optimizer built before knows nothing."""
    new = value.model if isinstance(value, Instance) else value
    if isinstance(new, Model) and not new.unseen and not overlap(new.whole(), model.whole()):
        _replaced(walk, part, new.whole(), model.keys, node)


def rebound(walk: Walk, target: ast.Name, old: Value | None, new: Model) -> None:
    """`model = Net()` once more: the name now stands for another model."""
    if not isinstance(old, Model) or old is new or new.unseen or overlap(old.whole(), new.whole()):
        return
    if _is_parameter(walk.frame, target.id):
        return  # of this call only: whoever called goes on with the model it has
    if not _known_otherwise(walk.frame, target.id, old):
        _replaced(walk, target.id, new.whole(), old.whole(), target)


def _is_parameter(frame: Frame, name: str) -> bool:
    owner = frame.owner
    spec = owner.node.args if isinstance(owner, Func) else None
    return spec is not None and name in {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}


def _known_otherwise(frame: Frame | None, name: str, model: Model) -> bool:
    """Whether the model lives on under another name, so that `name` was only an alias of it."""
    while frame is not None:
        for other, held in frame.vars.items():
            if other != name and isinstance(held, Model) and overlap(held.whole(), model.whole()):
                return True
        frame = frame.parent
    return False


def _replaced(walk: Walk, part: str, new: Keys, old: Keys, node: ast.AST) -> None:
    attrs = {"part": part, "keys": new, "old": old}
    walk.emit(EventKind.REPLACE, node, models=old, attrs=attrs if not walk.unsure else {})

"""What happens to parameters that an optimizer may hold: they are frozen, or others take their place."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from gradclinic.facts import EventKind
from gradclinic.static.conditions import truth
from gradclinic.static.values import Frame, Func, Instance, Keys, Model, Params, Unknown, Value, overlap
from gradclinic.static.walk import Walk


def freeze(walk: Walk, of: Value, requires: Value, node: ast.AST) -> None:
    """`p.requires_grad = False` and its like; what is made to require a gradient again is never judged."""
    keys = of.models if isinstance(of, Params) else of.whole() if isinstance(of, Model) else None
    if not keys or truth(requires) is not False or walk.survey.unfreezes:
        return
    sure = not walk.unsure and keys.isdisjoint(walk.recorder.alike)
    attrs: dict[str, object] = {"keys": keys} if sure else {}
    walk.emit(EventKind.FREEZE, node, models=keys, attrs=attrs)


def put_in(walk: Walk, model: Model, part: str, value: Value, node: ast.expr) -> None:
    """`model.head = nn.Linear(...)`: a new part, of which an optimizer built before knows nothing."""
    new = value.model if isinstance(value, Instance) else value
    if model.layers == ("Dropout",):
        model.layers = None  # This may take the place of all that drops: `vgg.classifier = nn.Linear(...)`
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


def exchanged(walk: Walk, held: Mapping[Any, Value], key: object, new: Model, node: ast.expr) -> None:
    """The same for `self.model = Net()` and `models["encoder"] = Net()`, if the first was made in sight."""
    old = held.get(key)
    if not isinstance(old, Model) or old is new or overlap(old.whole(), new.whole()):
        return
    if not all("@" in part for part in old.keys) or _known_otherwise(walk.frame, "", old):
        return
    others = [value for name, value in held.items() if name != key and isinstance(value, Model)]
    if not any(overlap(other.whole(), old.whole()) for other in others):
        _replaced(walk, ast.unparse(node), new.whole(), old.whole(), node)


def loaded(value: Value, old: Value | None, name: str) -> Value:
    """`model = torch.load(path)`: what takes the place of a model is one."""
    if isinstance(old, Model) and isinstance(value, Unknown) and value.path.startswith("torch.load@"):
        return Model(frozenset({value.path}), name)
    return value


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
    walk.emit(EventKind.REPLACE, node, models=old, attrs={"part": part, "keys": new, "old": old})

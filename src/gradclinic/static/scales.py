"""Calls that cannot be followed, and whether they leave the scale of a loss in its gradients.

Only `unscale_` takes it out, or a hand that asks for the scale. What has got the scaler may, whatever else
its name says: `check_gradients(optimizer, scaler)`. What has not can do so only through an object of the
project; where no file of that speaks of it, nothing does.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable

from gradclinic.facts import ActorKind, EventKind
from gradclinic.static.project_files import text_of
from gradclinic.static.project_words import never_said
from gradclinic.static.syntax import last_name
from gradclinic.static.values import Accelerator, ActorRef, Map, Seq, Unknown, Value
from gradclinic.static.walk import Walk
from gradclinic.static.words import Pattern

_UNSCALES = re.compile(
    rb"unscale_|\.unscale|\bunscale\(|get_scale\(|inv_scale|\._scale\b|"
    rb"(?s:caler.*\[.scale.\]|\[.scale.\].*caler)"
)
"""The last ones in a file that speaks of scalers: layers have scales as well."""
_SPEAKS_OF_IT = Pattern(r"scale|overflow|(^|_)amp(_|$)", re.I)
"""A function of a library may have the scaler without being given it: `maybe_unscale(optimizer)`."""
_HANGS_UP = Pattern(r"(^|_)(install|(add|attach|register|set_?up)_\w*hook|hook_(in|up))|unscal", re.I)
"""What is given the scaler before the first batch may unscale in each: `install_hooks(optimizer, scaler)`."""
_HAS_ITS_OWN = re.compile(
    r"^\s*(?:from|import) (?:accelerate|pytorch_lightning|lightning|fastai|catalyst|composer|deepspeed|"
    r"mmengine|mmcv|ignite|timm|apex|colossalai)\b",
    re.M,
)
"""Frameworks that hold a scaler themselves."""


def note_scale(walk: Walk, given: Iterable[Value], node: ast.Call, since: int) -> None:
    """Say of a call that it may take the scale out, or, where it was put on the tape `since` then, that it
    leaves it where it is."""
    drafts = walk.recorder.drafts
    if not walk.batches and _HANGS_UP.search(last_name(node.func)) and _has_scaler(given):
        walk.hooks_unscale = True
    if not _is_scaled(walk, since):
        return
    if _has_scaler(given):
        if len(drafts) == since:
            walk.emit(EventKind.UNSCALE, node, models=None)
        return
    if not _SPEAKS_OF_IT.search(last_name(node.func)) and never_unscaled(walk.path):
        for draft in drafts[since:]:
            draft.attrs = {**draft.attrs, "keeps_scale": True}


def never_unscaled(file: str) -> bool:
    """Whether nothing in the project of the file takes a scale out of gradients but a step that does so."""
    return never_said(file, _UNSCALES) and not _HAS_ITS_OWN.search(text_of(os.path.abspath(file)))


def _is_scaled(walk: Walk, before: int) -> bool:
    for draft in reversed(walk.recorder.drafts[:before]):
        if draft.kind is EventKind.BACKWARD:
            return draft.attrs.get("scaler") is not None
        if draft.kind in (EventKind.STEP, EventKind.UNSCALE, EventKind.ZERO_GRAD):
            return False
    return False


def _has_scaler(given: Iterable[Value]) -> bool:
    for value in given:
        if isinstance(value, Accelerator) or (isinstance(value, ActorRef) and value.kind is ActorKind.SCALER):
            return True
        inside: Iterable[Value] = ()
        if isinstance(value, Seq):
            inside = value.items
        elif isinstance(value, Map):
            inside = value.items.values()
        elif isinstance(value, Unknown):
            inside = value.holds
        if _has_scaler(inside):
            return True
    return False

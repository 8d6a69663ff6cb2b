"""Files that step and go backward nowhere: any call that is given a loss might hide the backward."""

from __future__ import annotations

import ast

from gradclinic.static import words
from gradclinic.static.conditions import name_of
from gradclinic.static.relevance import is_given_a_loss
from gradclinic.static.values import Const, Num, Value
from gradclinic.static.walk import Walk


def may_go_backward(walk: Walk, name: str, values: list[Value], node: ast.Call) -> bool:
    """Whether a loss may be among what it is given that nobody has seen being computed; a number is none."""
    if not walk.survey.steps_on_nothing or words.harmless_for_model(name):
        return False
    if all(isinstance(v, (Const, Num)) or name_of(v).startswith("<tensor>.") for v in values):
        return False
    return walk.for_effect is node or is_given_a_loss(node)

"""How many steps a walk may take: a file that merely looks like training must come to an end."""

from __future__ import annotations

import ast

from gradclinic.static.abilities import Can
from gradclinic.static.survey import Survey
from gradclinic.static.values import FunctionNode

STEPS_PER_FILE = 48_000
STEPS_PER_ROOT = 24_000
"""Far more than most that train take; of those that would take more, few come to an end at all."""
STEPS_ASIDE = 6_000
"""For a root that trains nothing: it shows how a model is evaluated at most."""
STEPS_ELSEWHERE = 5_000
"""For a file that calls modules which train, and does nothing of it itself."""


def steps_for(root: FunctionNode | ast.Module, survey: Survey) -> int:
    body = root.body if isinstance(root, ast.Module) else [root]
    trains = survey.modules or survey.can_any(body) & (Can.BACKWARD | Can.STEP)
    return STEPS_PER_ROOT if trains else STEPS_ASIDE

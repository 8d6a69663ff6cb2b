"""Learning-rate schedules as they are built: their length, and the unit it was computed in."""

from __future__ import annotations

import ast
import re

from gradclinic.facts import ActorKind
from gradclinic.static import words
from gradclinic.static.abilities import Can
from gradclinic.static.held import optimizers_in, parts
from gradclinic.static.opaque import build
from gradclinic.static.own_optimizers import in_sight
from gradclinic.static.project_files import file_of, parsed, version_of
from gradclinic.static.syntax import last_name, names_in, nodes_in
from gradclinic.static.values import ActorRef, ClassDef, Func, Lib, Num, Seq, Value
from gradclinic.static.walk import Arguments, Walk

_DECAYS = {"StepLR": "step_size", "MultiStepLR": "milestones"}
_LENGTH_POSITION = {
    "CosineAnnealingLR": 1,
    "OneCycleLR": 2,
    "PolynomialLR": 1,
    "get_linear_schedule_with_warmup": 2,
    "get_cosine_schedule_with_warmup": 2,
    "get_polynomial_decay_schedule_with_warmup": 2,
    "get_scheduler": 3,
}
_LOADER = words.Pattern(r"^(train|data|trn|training)?_?(data)?_?(loader|dl)$", re.I)
"""Of batches; what a loader of tasks is as long as may be advanced after each of them."""
_HOOKS = frozenset({"register_step_post_hook", "register_step_pre_hook"})
_COUNTERS = frozenset({"last_epoch", "_step_count"})
_BASES = words.TORCH_SCHEDULES | {"_LRScheduler", "LRScheduler"}


def is_one(walk: Walk, schedule: Value, kinds: Value | None) -> bool | None:
    """`isinstance(schedule, OneCycleLR)`, of one that was built in sight as one of torch's."""
    actor = walk.recorder.known(schedule.id) if isinstance(schedule, ActorRef) else None
    if actor is None or actor.kind is not ActorKind.SCHEDULE or not actor.attrs.get("torch"):
        return None
    asked = kinds.items if isinstance(kinds, Seq) else [kinds]
    names = {kind.name.rpartition(".")[2] for kind in asked if isinstance(kind, Lib)}
    plain = len(names) == len(asked) and names <= words.TORCH_SCHEDULES
    if not plain or "or_another" in actor.attrs or actor.attrs["kind"] not in words.TORCH_SCHEDULES:
        return None
    return actor.attrs["kind"] in names


def gives_torchs_own(name: str, path: str) -> bool:
    """Whether what the file at `path` knows by this name of a builder is one, or a class on top of torch's.

    A class that merely has the name may set the rate before each step, and then skips none.
    """
    module, _, last = name.rpartition(".")
    if not last[0].isupper() or "transformers" in module.partition(".")[0]:
        return True
    bases = _bases(name, path)
    return bases is not None and not bases.isdisjoint(words.TORCH_SCHEDULES)


def has_torchs_name_only(name: str, path: str) -> bool:
    """Whether the project has a class of its own by a name that torch has too, and not on top of torch's."""
    bases = _bases(name, path) if not name.startswith("torch.") else None
    return bases is not None and bases.isdisjoint(words.TORCH_SCHEDULES)


def is_out_of_sight(name: str, path: str) -> bool:
    """Whether it is another module's by the name of torch's, and may set the rate before each step."""
    module = name.rpartition(".")[0]
    return bool(module.strip(".")) and not name.startswith("torch.") and file_of(module, path) is None


def _bases(name: str, path: str) -> frozenset[str] | None:
    """Those of a class that the file at `path` imports by this name; None where it is not in sight."""
    module, _, last = name.rpartition(".")
    file = file_of(module, path) if module.strip(".") else None
    if file is None:
        return None
    tree = parsed(file, *version_of(file))
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == last:
            return frozenset(last_name(base) for base in node.bases)
    return None


def own_schedule(walk: Walk, cls: ClassDef, args: Arguments, node: ast.AST) -> ActorRef | None:
    """The schedule that an object of a project's own class is: one on top of torch's, which advances it."""
    if not any(map(_of_torch, cls.outside_bases())) or not optimizers_in(args.all()):
        return None
    step = cls.find("step")
    written = {name for one in in_sight(cls) for name in names_in(one.node)}
    if (isinstance(step, Func) and walk.can(step.node) & Can.ACT) or not written.isdisjoint(_HOOKS):
        return None
    # One that advances in a way of its own may set the rate of the step that follows, and then skips none.
    as_torch = step is None and not _counts_otherwise(cls)
    return build_schedule(walk, cls.node.name, args, node, as_torch=as_torch, own=True)


def _counts_otherwise(cls: ClassDef) -> bool:
    """`self.last_epoch = -1` after torch's own constructor: what comes first is not skipped then."""
    return any(
        isinstance(part, ast.Attribute) and part.attr in _COUNTERS and isinstance(part.ctx, ast.Store)
        for one in in_sight(cls)
        for part in nodes_in(one.node)
    )


def _of_torch(base: str) -> bool:
    return "lr_scheduler" in base and base.rpartition(".")[2] in _BASES


def build_schedule(
    walk: Walk, name: str, args: Arguments, node: ast.AST, *, as_torch: bool = True, own: bool = False
) -> ActorRef | None:
    optimizers = optimizers_in(args.all())
    if not optimizers and not args.all():
        return None
    length = _length(name, args) if not own else None
    planned = length.value if isinstance(length, Num) and not length.invented else None
    # The arguments of a schedule of the project's own may mean anything.
    unit = (_unit(length, args) or _decay_unit(name, args)) if not own else None
    if unit is None and _is_one_pass(length, node):
        unit = "pass"
    attrs = {"torch": as_torch, "kind": name, "planned": planned, "planned_unit": unit}
    if _is_constant(name, node):
        attrs["constant"] = True
    parts_of_it = {
        part.id
        for part in parts(args.all())
        if isinstance(part, ActorRef) and part.kind is ActorKind.SCHEDULE
    }
    for id in parts_of_it:
        optimizers |= {of for of in walk.recorder.known(id).of if of.startswith(ActorKind.OPTIMIZER)}
    return build(walk, ActorKind.SCHEDULE, name, node, of=optimizers | parts_of_it, attrs=attrs)


def _is_constant(name: str, built: ast.AST) -> bool:
    """Whether the rate is the same whether it is advanced or not: `LambdaLR(optimizer, lambda step: 1.0)`."""
    if name == "get_constant_schedule":
        return True
    if name != "LambdaLR" or not isinstance(built, ast.Call):
        return False
    given = [*built.args[1:2], *(keyword.value for keyword in built.keywords if keyword.arg == "lr_lambda")]
    return any(isinstance(one, ast.Lambda) and isinstance(one.body, ast.Constant) for one in given)


def _length(name: str, args: Arguments) -> Value | None:
    for keyword in words.SCHEDULE_LENGTHS:
        if keyword in args.keywords:
            return args.keywords[keyword]
    position = _LENGTH_POSITION.get(name)
    return args.positional[position] if position is not None and position < len(args.positional) else None


def _is_one_pass(length: Value | None, built: ast.AST) -> bool:
    """`T_max=len(train_loader)`, as it stands."""
    if not isinstance(length, Num) or length.units != {"batch"} or not isinstance(built, ast.Call):
        return False
    return any(
        isinstance(value, ast.Call)
        and last_name(value.func) == "len"
        and any(_LOADER.search(last_name(measured)) for measured in value.args)
        for value in (*built.args, *(keyword.value for keyword in built.keywords))
    )


def _decay_unit(name: str, args: Arguments) -> str | None:
    """`StepLR(optimizer, epochs // 2)`, `milestones=[epochs // 2, 3 * epochs // 4]`: after so many epochs."""
    keyword = _DECAYS.get(name)
    given = args.get(1, keyword) if keyword is not None else None
    steps = given.items if isinstance(given, Seq) else [given]
    numbers = [step for step in steps if isinstance(step, Num)]
    units = {unit for number in numbers for unit in number.units}
    return "epoch" if units == {"epoch"} and len(numbers) == len(steps) else None


def _unit(length: Value | None, args: Arguments) -> str | None:
    if "epochs" in args.keywords and "steps_per_epoch" in args.keywords:
        per_epoch = args.keywords["steps_per_epoch"]
        units = per_epoch.units if isinstance(per_epoch, Num) else frozenset()
        return "update" if "update" in units else "batch" if "batch" in units else None
    if not isinstance(length, Num):
        return None
    if "accumulation" in length.units:
        return None  # `updates * accumulation` are batches, of whatever is called so
    if "update" in length.units:
        return "update"
    if "batch" in length.units:
        return "batch" if "epoch" in length.units else None
    return "epoch" if length.units == {"epoch"} else None

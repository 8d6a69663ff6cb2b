"""Readings of a learning rate that are not the learning rate."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts import Location
from gradclinic.facts.rates import RateReading
from gradclinic.static import words
from gradclinic.static.plain.scopes import Scope, scopes
from gradclinic.static.project_files import file_of, parsed, version_of
from gradclinic.static.project_words import said
from gradclinic.static.syntax import last_name, names_in

_LOGGING = ("add_scalar(", "wandb.log(", "log_metric(", "log_dict(")
_NAMED = r"(?i:lr|rate)[\"']"
_LOGS = frozenset({"add_scalar", "log", "log_metric", "log_dict", "log_scalar", "report_scalar"})
_RATE = words.Pattern(r"(^|[/_ .-])(lr|learning[_ ]?rate)$", re.I)
_IN_CLOSED_FORM = words.names("LambdaLR CosineAnnealingWarmRestarts OneCycleLR CyclicLR")
"""They compute each rate from the first one: whoever asks them gets the rate of now."""
_GIVES_THE_RATE_OF_NOW = re.compile(
    rb"def get_lr\(self|\b(?:LambdaLR|CosineAnnealingWarmRestarts|OneCycleLR|CyclicLR)\(|get_\w*schedule\w*\("
)
"""What a file of the project would say that has one of those, or writes its own."""
_SETTING = words.Pattern(r"^(args?|cfg|config|conf|hparams?|hps|opt|opts|options?|flags)$", re.I)


def may_tell(text: str) -> bool:
    logs = any(word in text for word in _LOGGING)
    return "get_lr(" in text or (logs and re.search(_NAMED, text) is not None)


def read(tree: ast.Module, text: str, path: str) -> Iterator[RateReading]:
    made = _made_from(tree, path)
    kinds = {
        name: {kind for maker in makers for kind in _kinds(maker, tree, path)}
        for name, makers in made.items()
    }
    lines = text.split("\n")
    for scope in scopes(tree):
        for call in scope.calls():
            if last_name(call.func) == "get_lr":
                yield from _asked(call, scope, kinds, lines, path)
            elif last_name(call.func) in _LOGS and scope.in_loop(call):
                yield from _logged(call, scope, made, tree, path)


def _asked(
    call: ast.Call, scope: Scope, made: dict[str, set[str]], lines: list[str], path: str
) -> Iterator[RateReading]:
    """`scheduler.get_lr()`, which computes the next rate from where the schedule stands."""
    if not isinstance(call.func, ast.Attribute) or call.args or call.keywords:
        return
    name = last_name(call.func.value)
    if name in ("self", "super", "cls") or not _is_schedule(name, made):
        return
    if scope.qualname.endswith("get_lr") and not _gives_one(call, scope):
        return  # a schedule that wraps another
    line, column = call.func.end_lineno or 0, (call.func.end_col_offset or 0) - len("get_lr")
    source = lines[line - 1] if 0 < line <= len(lines) else ""
    if "_last_lr" in source:
        return  # restoring a schedule by hand
    # Inside an f-string the parser does not know the column.
    exact = source.isascii() and source[column : column + len("get_lr(")] == "get_lr("
    yield RateReading(
        scope.at(call, path),
        name,
        "get_lr()",
        Location(path, line, column, scope.qualname) if exact else None,
        sure=name in made or not _may_be_in_closed_form(path),
    )


def _gives_one(call: ast.Call, scope: Scope) -> bool:
    """`return self.scheduler.get_lr()[0]`: schedules give a list, so this asks for the rate of now."""
    return any(
        isinstance(node, ast.Return) and isinstance(node.value, ast.Subscript) and node.value.value is call
        for node in scope.nodes
    )


def _logged(
    call: ast.Call, scope: Scope, made: dict[str, set[str]], tree: ast.Module, path: str
) -> Iterator[RateReading]:
    """`writer.add_scalar("lr", args.lr, step)`, while a schedule changes the rate."""
    schedules = [name for name, makers in made.items() if makers & words.TORCH_SCHEDULES]
    if not schedules:
        return
    pairs: list[tuple[ast.expr | None, ast.expr]] = []
    for arg in call.args:
        if isinstance(arg, ast.Dict):
            pairs += zip(arg.keys, arg.values, strict=True)
    if len(call.args) >= 2:
        pairs.append((call.args[0], call.args[1]))
    for key, value in pairs:
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str) and _RATE.search(key.value)):
            continue
        if isinstance(value, ast.Attribute) and _is_setting(value) and not _changed(value, tree):
            yield RateReading(scope.at(value, path), schedules[0], ast.unparse(value))


def _is_setting(value: ast.Attribute) -> bool:
    return value.attr in ("lr", "learning_rate") and bool(_SETTING.match(last_name(value.value)))


def _changed(value: ast.Attribute, tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == value.attr and isinstance(node.ctx, ast.Store)
        for scope in scopes(tree)
        for node in scope.nodes
    )


def _made_from(tree: ast.Module, path: str) -> dict[str, set[str]]:
    """For each name what was called to make it; of several at once, what sounds like making a schedule."""
    made: dict[str, set[str]] = {}
    for node in (node for scope in scopes(tree) for node in scope.nodes):
        if isinstance(node, ast.arg) and node.annotation is not None:
            kind = last_name(node.annotation)
            if kind in words.TORCH_SCHEDULES:
                made.setdefault(node.arg, set()).add(kind)
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(node.value, ast.Call):
            continue
        maker = last_name(node.value.func)
        if maker in words.TORCH_SCHEDULES and _is_of_the_project(node.value.func, tree, path):
            maker = f"Own{maker}"
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if not isinstance(target, ast.Tuple):
                made.setdefault(last_name(target), set()).add(maker)
            elif words.SCHEDULE_NAME.search(maker):
                for part in target.elts:
                    made.setdefault(last_name(part), set()).add(maker)
    return made


def _is_of_the_project(func: ast.expr, tree: ast.Module, path: str) -> bool:
    """Whether it is a class that merely has the name of torch's: its rates are its own."""
    files = [file_of(module, path) for module in _modules_of(func, tree)]
    others = [parsed(file, *version_of(file)) for file in files if file is not None]
    return any(
        isinstance(node, ast.ClassDef)
        and node.name == last_name(func)
        and words.TORCH_SCHEDULES.isdisjoint(map(last_name, node.bases))
        for module in (tree, *others)
        if module is not None
        for node in module.body
    )


def _modules_of(func: ast.expr, tree: ast.Module) -> Iterator[str]:
    """Those that it may be taken from: `L` in `L.StepLR(...)`, or what the name is imported from."""
    of = last_name(func.value) if isinstance(func, ast.Attribute) else None
    for node in (node for scope in scopes(tree) for node in scope.nodes):
        if isinstance(node, ast.Import) and of is not None:
            yield from (alias.name for alias in node.names if (alias.asname or alias.name) == of)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                if of is None and alias.name in (last_name(func), "*"):
                    yield module
                elif of is not None and (alias.asname or alias.name) == of:
                    yield f"{module}.{alias.name}" if node.module else f"{module}{alias.name}"


def _kinds(maker: str, tree: ast.Module, path: str) -> set[str]:
    """The schedules that a function of the project or of transformers may give, as far as it speaks of any;
    else its name."""
    if not words.SCHEDULE_NAME.search(maker) or maker[:1].isupper():
        return {maker}
    function = _defined(maker, tree, path)
    if function is None:
        # Whoever has one by such a name has it from transformers, or took it from there.
        return {"LambdaLR"} if words.SCHEDULE_BUILDERS.match(maker) else {maker}
    spoken = set(names_in(function))
    builders = any(words.SCHEDULE_BUILDERS.match(word) for word in spoken - {maker})
    return set(words.TORCH_SCHEDULES & spoken) | ({"LambdaLR"} if builders else set()) or {maker}


def _defined(function: str, tree: ast.Module, path: str) -> ast.AST | None:
    """The function or method of that name in the file, or in the one that it is imported from."""
    for scope in scopes(tree):
        if scope.qualname.rpartition(".")[2] == function:
            return scope.node
    for node in _imports_of(function, tree):
        file = file_of("." * node.level + (node.module or ""), path)
        other = parsed(file, *version_of(file)) if file is not None else None
        for part in other.body if other is not None else ():
            if isinstance(part, ast.FunctionDef) and part.name == function:
                return part
    return None


def _imports_of(function: str, tree: ast.Module) -> Iterator[ast.ImportFrom]:
    for scope in scopes(tree):
        for node in scope.nodes:
            if isinstance(node, ast.ImportFrom) and any(alias.name == function for alias in node.names):
                yield node


def _may_be_in_closed_form(path: str) -> bool:
    """Whether who gives a schedule may have made it of what computes each rate from the first."""
    return said(path, _GIVES_THE_RATE_OF_NOW)


def _is_schedule(name: str, made: dict[str, set[str]]) -> bool:
    """Whether it is one whose next rate is computed from the last."""
    makers = made.get(name)
    if makers is None:
        return bool(words.SCHEDULE_NAME.search(name))
    if makers & _IN_CLOSED_FORM:
        return False  # or another one, where a setting chooses: it is right where it is asked
    if makers & words.TORCH_SCHEDULES:
        return True
    return any(words.SCHEDULE_NAME.search(maker) and maker[0].islower() for maker in makers)

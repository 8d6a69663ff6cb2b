"""Data sets that write into what they store, or whose workers share their randomness."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradclinic.facts import Location
from gradclinic.facts.stored import Mutation, StoredData, WorkerRandomness
from gradclinic.static.plain.scopes import scopes
from gradclinic.static.syntax import children, last_name, names_in, nodes_in

_SEEN = "the sample is no copy of what is stored, and is changed in place"
_COPIED = "the generator is made once, and each worker starts with a copy of it"
_FORMS = frozenset({"Path", "str", "int", "float", "list", "tuple", "as_tensor", "asarray", "from_numpy"})
"""Calls that give the same thing back in another form, at the first time and at every other."""
_OF_MANY = frozenset({"mean", "std", "max", "min", "sum", "shape", "ndim"})
_GENERATORS = frozenset({"RandomState", "default_rng", "Random", "Generator"})


def may_tell(text: str) -> bool:
    return "__getitem__" in text and "Dataset" in text


def read(tree: ast.Module, text: str, path: str) -> Iterator[StoredData | WorkerRandomness]:
    classes = [node for scope in scopes(tree) for node in scope.nodes if isinstance(node, ast.ClassDef)]
    for cls in classes:
        fetch = _method(cls, "__getitem__")
        if fetch is None or len(fetch.args.args) != 2 or not _is_data_set(cls):
            continue
        written = tuple(_writes(cls, fetch, path))
        if written:
            yield StoredData(None, written[:1], _SEEN)
        generator = _shared_generator(cls, fetch)
        if generator is not None:
            workers = _workers(tree, cls.name)
            if workers:
                where = Location(path, generator.lineno, generator.col_offset, f"{cls.name}.__init__")
                yield WorkerRandomness(workers, random=True, shared=True, where=where, seen=_COPIED)


def _method(cls: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    found = (node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return next(found, None)


def _is_data_set(cls: ast.ClassDef) -> bool:
    return any(last_name(base).endswith("Dataset") for base in cls.bases)


def _writes(cls: ast.ClassDef, fetch: ast.FunctionDef, path: str) -> Iterator[Mutation]:
    """In-place changes of a stored sample, by itself or under another name that is no copy."""
    index = fetch.args.args[1].arg
    aliases: dict[str, str] = {}
    tensors, arrays = _tensors(cls), _arrays(cls)
    for node in _in_order(fetch):
        attribute, target = "", None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                stored = _stored_sample(node.value, index, aliases)
                aliases.pop(target.id, None)
                if stored:
                    aliases[target.id] = stored
                continue
            if isinstance(target, ast.Subscript):
                attribute = _written(target, node.value, index, aliases)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
            if not (isinstance(node.value, ast.Constant) and isinstance(node.op, ast.Add)):
                target = node.target
                attribute = _stored_sample(target, index, aliases) or _stored_sample(
                    target.value, index, aliases
                )
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            target = node.target
            held = aliases.get(target.id, "")
            attribute = held if held in tensors or (held in arrays and _has_rows(target.id, fetch)) else ""
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _in_place(node.func.attr)
        ):
            target = node.func.value
            attribute = _stored_sample(target, index, aliases)
        if attribute and target is not None:
            where = Location(path, node.lineno, node.col_offset, f"{cls.name}.__getitem__")  # type: ignore[attr-defined]
            yield Mutation(attribute, None, where)


def _tensors(cls: ast.ClassDef) -> set[str]:
    """Attributes that torch made: `x += noise` on a part of one writes into it, on a number it does not."""
    return {name for name, call in _made(cls) if names_in(call.func)[-1:] == ["torch"]}


def _arrays(cls: ast.ClassDef) -> set[str]:
    """The same of numpy, in memory; a row of one is a part of it, a number in it is none."""
    made = ((name, call) for name, call in _made(cls) if names_in(call.func)[-1:] in (["np"], ["numpy"]))
    return {name for name, call in made if all(keyword.arg != "mmap_mode" for keyword in call.keywords)}


def _has_rows(name: str, function: ast.FunctionDef) -> bool:
    """Whether it is asked for something that only many numbers have: `image -= image.mean()`."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in _OF_MANY
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in nodes_in(function)
    )


def _made(cls: ast.ClassDef) -> Iterator[tuple[str, ast.Call]]:
    """`self.name = call(...)` of the constructor, alone or in a row."""
    constructor = _method(cls, "__init__")
    for node in nodes_in(constructor) if constructor is not None else ():
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        for to, made in pairs:
            if isinstance(to, ast.Attribute) and isinstance(made, ast.Call):
                yield to.attr, made


def _in_order(function: ast.FunctionDef) -> list[ast.AST]:
    """Statements and calls as they are written, without functions inside."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(reversed(function.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            continue
        found.append(node)
        waiting += reversed(children(node))
    return found


def _stored_sample(node: ast.expr, index: str, aliases: dict[str, str]) -> str:
    """`self.images[index]`, or a name for it: the attribute it is stored in, nothing for other things."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id, "")
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return ""
    owner = node.value.value
    mine = isinstance(owner, ast.Name) and owner.id == "self"
    plain = isinstance(node.slice, ast.Name) and node.slice.id == index
    return node.value.attr if mine and plain else ""


def _written(target: ast.Subscript, value: ast.expr, index: str, aliases: dict[str, str]) -> str:
    """`self.images[i] = f(self.images[i])`, `image[mask] = 0`, `sample["x"] = f(sample["x"])`."""
    if isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
        held = _stored_sample(target.value, index, aliases)
        return held if held and ast.unparse(target) in ast.unparse(value) else ""
    direct = _stored_sample(target, index, aliases)
    if direct:
        # What is written for the first time is a cache, and rightly so; `files[i] = Path(files[i])` as well.
        same = isinstance(value, ast.Call) and last_name(value.func) in _FORMS and len(value.args) == 1
        return direct if ast.unparse(target) in ast.unparse(value) and not same else ""
    held = _stored_sample(target.value, index, aliases)
    return (
        held if held and isinstance(target.value, ast.Name) and not isinstance(target.slice, ast.Name) else ""
    )


def _in_place(method: str) -> bool:
    return method.endswith("_") and not method.startswith("_") and method != "requires_grad_"


def _shared_generator(cls: ast.ClassDef, fetch: ast.FunctionDef) -> ast.Call | None:
    """A generator that is made once, copied into every worker, and drawn from in `__getitem__`."""
    used = {
        node.value.attr
        for node in nodes_in(fetch)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and isinstance(node.value.value, ast.Name)
        and node.value.value.id == "self"
    }
    made = (call for name, call in _made(cls) if name in used and last_name(call.func) in _GENERATORS)
    return next(made, None)


def _workers(tree: ast.Module, name: str) -> int:
    """The workers of a loader over this class, when they are plainly several and seeded by nobody."""
    nodes = list(nodes_in(tree))
    if any(isinstance(node, ast.keyword) and node.arg == "worker_init_fn" for node in nodes):
        return 0
    if any("get_worker_info" in names_in(node) for node in nodes if isinstance(node, ast.FunctionDef)):
        return 0
    held = {
        last_name(node.targets[0])
        for node in nodes
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and last_name(node.value.func) == name
    }
    for node in nodes:
        if not isinstance(node, ast.Call) or last_name(node.func) != "DataLoader" or not node.args:
            continue
        if last_name(node.args[0]) not in held | {name}:
            continue
        for keyword in node.keywords:
            if keyword.arg == "num_workers" and isinstance(keyword.value, ast.Constant):
                count = keyword.value.value
                return count if isinstance(count, int) and count > 1 else 0
    return 0

"""Methods of a model other than forward: whether what they compute has a graph, as what forward gives."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradclinic.static import words
from gradclinic.static.syntax import last_name, names_in, nodes_in

SWITCHES = words.names(
    "no_grad inference_mode set_grad_enabled enable_grad autograd grad volatile requires_grad requires_grad_ "
    "train eval"
)
"""Words of a method that may switch gradients, or the mode, by itself."""
_NO_GRADIENTS = words.names("no_grad inference_mode set_grad_enabled")
_FREEZES = words.Pattern(r"requires_grad|freeze|frozen")
_WEIGHTED = words.Pattern(
    r"(Lazy)?(Linear|Conv\dd|ConvTranspose\dd)$|Bilinear$|Embedding(Bag)?$|(RNN|LSTM|GRU)(Cell)?$|MultiheadAttention$"
    r"|Transformer((En|De)coder(Layer)?)?$"
)
"""Layers of torch.nn that hold weights. Of norms nobody takes the output for a prediction."""
_DEEPEST = 4


class Written:
    """What some files write about layers: their classes, of which those of the last file come first, and what
    they import from torch.nn by its name."""

    def __init__(self, trees: Iterable[ast.Module]) -> None:
        parts = [part for tree in trees for part in tree.body]
        self.classes = {part.name: part for part in parts if isinstance(part, ast.ClassDef)}
        self.torch = {
            alias.name
            for part in parts
            if isinstance(part, ast.ImportFrom) and (part.module or "").startswith("torch.nn")
            for alias in part.names
            if alias.asname is None
        } - self.classes.keys()

    def computing(self, cls: ast.ClassDef, *, by_layers: bool) -> frozenset[str]:
        """The methods of a class with a forward that plainly run that: `predict(x)` is `self(x).argmax(1)`.
        Or `by_layers` with weights, where nobody may have frozen them from outside. None where the class, or
        one it derives from, freezes anything.
        """
        methods = _methods(cls)
        forward = methods.get("forward")
        if forward is None or self._freezes(cls):
            return frozenset()
        layers = self._layers(cls) if by_layers else frozenset()
        loud = not _is_quiet(forward)
        return frozenset(name for name, method in methods.items() if _runs(method, layers, itself=loud))

    def _layers(self, cls: ast.ClassDef) -> frozenset[str]:
        """`self.body = nn.Linear(4, 4)` in `__init__`, and nothing else by that name in the class."""
        begin = _methods(cls).get("__init__")
        if begin is None:
            return frozenset()
        own = begin.args.args[0].arg if begin.args.args else ""
        made: set[str] = set()
        others: set[str] = set()
        within = set(nodes_in(begin))
        for node in nodes_in(cls):
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in targets:
                if isinstance(target, ast.Attribute) and last_name(target.value) == own:
                    weighted = isinstance(node, ast.Assign) and self._is_weighted(node.value)
                    (made if weighted and node in within else others).add(target.attr)
        return frozenset(made - others)

    def _is_weighted(self, value: ast.expr, depth: int = _DEEPEST) -> bool:
        """`nn.Linear(4, 4)`, `nn.Sequential(...)` with such in it, or a module in sight that has such."""
        if not isinstance(value, ast.Call) or not depth:
            return False
        func = value.func
        if isinstance(func, ast.Name) and func.id in self.classes:
            return self._holds(self.classes[func.id], depth - 1)
        if not self._of_torch(func):
            return False
        if last_name(func) == "Sequential":
            made = [
                part
                for given in value.args
                for part in nodes_in(given)
                if isinstance(part, ast.Call) and last_name(part.func) != "OrderedDict"
            ]
            weighted = [self._is_weighted(part, depth - 1) for part in made]
            # What is not of torch may cut the graph off.
            return any(weighted) and all(
                known or self._of_torch(part.func) for known, part in zip(weighted, made, strict=True)
            )
        return _WEIGHTED.match(last_name(func)) is not None

    def _of_torch(self, func: ast.expr) -> bool:
        if isinstance(func, ast.Attribute):
            return last_name(func.value) == "nn"
        return isinstance(func, ast.Name) and func.id in self.torch

    def _holds(self, cls: ast.ClassDef, depth: int) -> bool:
        """Whether it is a module that makes layers with weights, freezes none and computes with a graph."""
        methods = _methods(cls)
        begin, forward = methods.get("__init__"), methods.get("forward")
        if begin is None or forward is None or not self._is_module(cls):
            return False
        if _is_quiet(forward) or _asks_mode(forward) or self._freezes(cls):
            return False
        made = [node for node in nodes_in(begin) if isinstance(node, ast.Call)]
        return any(self._is_weighted(node, depth) for node in made)

    def _is_module(self, cls: ast.ClassDef) -> bool:
        return any(last_name(base) == "Module" for one in self._family(cls) for base in one.bases)

    def _freezes(self, cls: ast.ClassDef) -> bool:
        return any(_FREEZES.search(word) for one in self._family(cls) for word in _words(one))

    def _family(self, cls: ast.ClassDef) -> list[ast.ClassDef]:
        """The class, and those in sight that it derives from."""
        found = [cls]
        for one in found:  # which grows meanwhile
            bases = (self.classes.get(last_name(base)) for base in one.bases)
            found += [base for base in bases if base is not None and base not in found]
        return found


def _methods(cls: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {part.name: part for part in cls.body if isinstance(part, ast.FunctionDef)}


def _words(node: ast.AST) -> list[str]:
    """All names in it, those of keywords too: `nn.Parameter(w, requires_grad=False)`."""
    keywords = [part.arg for part in nodes_in(node) if isinstance(part, ast.keyword) and part.arg]
    return names_in(node) + keywords


def _is_quiet(forward: ast.FunctionDef) -> bool:
    """Whether it may compute without a graph: decorated, or with a word of that in it."""
    return bool(forward.decorator_list) or not _NO_GRADIENTS.isdisjoint(names_in(forward))


def _asks_mode(method: ast.FunctionDef) -> bool:
    """`if self.training`, but not `F.dropout(x, training=self.training)`."""
    nodes = nodes_in(method)
    given = {
        part
        for node in nodes
        if isinstance(node, ast.Call)
        for part in (*node.args, *(keyword.value for keyword in node.keywords))
    }
    return any(
        isinstance(node, ast.Attribute) and node.attr == "training" and node not in given for node in nodes
    )


def _runs(method: ast.FunctionDef, layers: frozenset[str], *, itself: bool) -> bool:
    """Whether it calls one of the layers, or the module `itself`. Not under a decorator, nor with a block in
    it, which may switch gradients off, nor where it asks for the mode and may do so in train mode only."""
    parameters = method.args.args
    if method.decorator_list or not parameters or not SWITCHES.isdisjoint(names_in(method)):
        return False
    nodes = nodes_in(method)
    if any(isinstance(node, (ast.With, ast.AsyncWith)) for node in nodes) or _asks_mode(method):
        return False
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    own = parameters[0].arg
    if itself and any(isinstance(func, ast.Name) and func.id == own for func in called):
        return True
    run = layers | {"forward"} if itself else layers
    return any(
        isinstance(func, ast.Attribute)
        and isinstance(func.value, ast.Name)
        and func.value.id == own
        and func.attr in run
        for func in called
    )

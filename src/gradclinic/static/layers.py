"""Which layers of a model behave differently in train and in eval mode, as far as the file shows them."""

from __future__ import annotations

import ast
import re

from gradclinic.static import words
from gradclinic.static.library_layers import LIBRARIES, drops, layers_of_library
from gradclinic.static.survey import Survey
from gradclinic.static.syntax import last_name, names_in, nodes_in
from gradclinic.static.values import Const, Model, Num, Seq
from gradclinic.static.walk import Arguments

_CARES = words.Pattern(
    r"^(\w*Dropout\w*|\w*BatchNorm\w*|DropPath|drop_path|StochasticDepth|RReLU|dropout\w*|Transformer(En|De)coder\w*|"
    r"Transformer|MultiheadAttention)$"
)
_PLAIN = words.Pattern(
    r"^(Linear|Bilinear|Conv\w+|ConvTranspose\w+|\w*ReLU\d?|GELU|SiLU|ELU|CELU|SELU|Tanh|Sigmoid|Softmax|LogSoftmax|Softplus|"
    r"Hardtanh|Mish|LayerNorm|GroupNorm|RMSNorm|InstanceNorm\w+|Embedding\w*|Flatten|Unflatten|Identity|\w*Pool\w+|"
    r"Upsample\w*|Pixel\w+|\w*Pad\dd|Sequential|ModuleList|ModuleDict|Parameter|ParameterList|Module|RNN|LSTM|GRU|"
    r"RNNCell|LSTMCell|GRUCell|Variable|\w*Tensor|OrderedDict|\w+Error)$"
)
"""Nothing that cares, nor anything that could hold what does."""
_RECURRENT = frozenset({"RNN", "LSTM", "GRU"})
_DEEPEST = 4
_PARTS = words.names("features classifier children named_children _modules modules")
"""What is taken of a VGG, say, or put into it."""
_TAKES_PARTS = words.names("getattr children named_children modules named_modules _modules __dict__")
"""Ways to come by the parts of a module without their names."""


_DIFFERENTIATES = words.names("grad jacobian hessian jacrev jacfwd vjp jvp enable_grad")


_QUIET = frozenset({"no_grad", "inference_mode"})


def _differentiates(cls: ast.ClassDef) -> bool:
    """Whether a module computes gradients in order to compute: forces of an energy, say. Or chooses by its
    mode whether there are any: `with torch.set_grad_enabled(self.training)`."""
    forward = [part for part in cls.body if isinstance(part, ast.FunctionDef) and part.name == "forward"]
    names = set(names_in(forward[0])) if forward else set()
    if "set_grad_enabled" in names or ("training" in names and not names.isdisjoint(_QUIET)):
        return True
    return bool(forward) and any(
        isinstance(node, ast.Call) and last_name(node.func) in _DIFFERENTIATES for node in nodes_in(cls)
    )


def any_differentiates(survey: Survey) -> bool:
    if survey.differentiates is None:
        survey.differentiates = any(map(_differentiates, survey.classes.values()))
    return survey.differentiates


def layers_of_call(name: str, args: Arguments) -> tuple[str, ...] | None:
    """Of `nn.Name(...)`; None when it is made of things that are out of sight."""
    if _CARES.match(name):
        return (name,)
    if name in _RECURRENT:
        dropout = args.keywords.get("dropout")
        off = dropout is None or (isinstance(dropout, (Const, Num)) and not dropout.value)
        return () if off else (name,)
    if not _PLAIN.match(name):
        return None
    found: list[str] = []
    parts = [item for value in args.all() for item in (value.items if isinstance(value, Seq) else [value])]
    for part in parts if name in ("Sequential", "ModuleList") else ():
        if not isinstance(part, Model) or part.layers is None:
            return None
        found += part.layers
    return tuple(dict.fromkeys(found))


def layers_of_class(survey: Survey, cls: ast.ClassDef, depth: int = _DEEPEST) -> tuple[str, ...] | None:
    """Of a module class of the file, with the classes of the file that it is made of."""
    if (cls, depth) not in survey.layers:
        survey.layers[cls, depth] = _layers_of_class(survey, cls, depth)
    return survey.layers[cls, depth]


def _layers_of_class(survey: Survey, cls: ast.ClassDef, depth: int) -> tuple[str, ...] | None:
    found: dict[str, None] = {}
    seen_all = True
    unused, perhaps = _made_in_vain(cls)
    unused |= _kept_in_eval(cls)
    for node in nodes_in(cls):
        if isinstance(node, ast.Attribute) and node.attr == "training" and node not in perhaps:
            found["self.training"] = None
        if not isinstance(node, ast.Call) or node in unused:
            continue
        name = last_name(node.func)
        inner = survey.classes.get(name)
        known = _of_library(survey, node)
        if known is not None and _may_be_left_out(survey, cls, known):
            known, seen_all = None, False
        if (_CARES.match(name) or known) and node in perhaps:
            seen_all = False
        elif known:
            found.update(dict.fromkeys(known))
        elif _CARES.match(name):
            if not _drops_nothing(node):
                found[name] = None
        elif inner is not None and inner is not cls and depth:
            layers = layers_of_class(survey, inner, depth - 1)
            found.update(dict.fromkeys(layers or ()))
            seen_all = seen_all and layers is not None
        elif name in _RECURRENT:
            if any(keyword.arg == "dropout" and not _is_zero(keyword.value) for keyword in node.keywords):
                found[name] = None
        elif (name[:1].isupper() and not _PLAIN.match(name)) or _builds_elsewhere(node, survey):
            seen_all = False
    if found:
        return tuple(found)
    bases = {last_name(base) for base in cls.bases}
    return () if seen_all and bases <= {"Module"} else None


def _drops_nothing(call: ast.Call) -> bool:
    """`nn.Dropout(0.0)`, though the first number of a batch-norm is no rate. A function drops whatever the
    mode is, unless it is asked for: `F.dropout(x, training=self.training)`."""
    owner = last_name(call.func.value) if isinstance(call.func, ast.Attribute) else "F"
    if last_name(call.func).islower() and owner in ("F", "functional", "torch"):
        return True
    rates = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "p")]
    return "rop" in last_name(call.func) and any(map(_is_zero, rates))


def _is_zero(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in (0, None) and value.value is not False


def _of_library(survey: Survey, node: ast.Call) -> tuple[str, ...] | None:
    """`self.encoder = models.resnet18()`, by what the file imports as `models`."""
    path = names_in(node.func)
    root = survey.imports.get(path[-1], path[-1]) if path else ""
    if root.partition(".")[0] not in LIBRARIES:
        return None
    first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
    settings = [keyword.arg or "" for keyword in node.keywords]
    return layers_of_library(".".join([root, *reversed(path[:-1])]), first, settings)


def _may_be_left_out(survey: Survey, cls: ast.ClassDef, layers: tuple[str, ...]) -> bool:
    """Whether the class may use a part of it only that has no dropout, or choose how much is dropped."""
    if any(map(drops, layers)):
        return survey.chooses_dropout or survey.alters_layers
    return layers == ("Dropout",) and not _PARTS.isdisjoint(names_in(cls))


def _made_in_vain(cls: ast.ClassDef) -> tuple[set[ast.AST], set[ast.AST]]:
    """What `self.dropout = nn.Dropout(0.2)` makes, where the class computes and never speaks of it again; and
    all that is made or applied under conditions only: `if self.drops: x = self.dropout(x)`."""
    made: dict[str, list[ast.AST]] = {}
    spoken_of: set[str] = set()
    always: set[str] = set()
    asked = {part for node in nodes_in(cls) if isinstance(node, ast.If) for part in _inside(node)}
    for node in nodes_in(cls):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            made.setdefault(node.targets[0].attr, []).append(node.value)
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Store):
            spoken_of.add(node.attr)
            if node not in asked:
                always.add(node.attr)
        elif isinstance(node, ast.Name):
            spoken_of.add(node.id)
    computes = any(isinstance(part, ast.FunctionDef) and part.name == "forward" for part in cls.body)
    if not computes or not spoken_of.isdisjoint(_TAKES_PARTS):
        return set(), asked
    unused = {value for name, values in made.items() if name not in spoken_of for value in values}
    perhaps = {value for name, values in made.items() if name not in always for value in values}
    return unused, perhaps | asked


def _kept_in_eval(cls: ast.ClassDef) -> set[ast.AST]:
    """What makes the parts that the class itself puts into eval mode, where it is made or in its `train()`:
    `self.backbone = resnet18().eval()` is meant to stay so."""
    own = [part for part in cls.body if getattr(part, "name", "") in ("__init__", "train")]
    nodes = [node for method in own for node in nodes_in(method)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and last_name(node.func) == "eval"]
    kept = {last_name(call.func.value) for call in calls if isinstance(call.func, ast.Attribute)}
    return {
        part
        for node in nodes
        if isinstance(node, ast.Assign)
        if node.value in calls or last_name(node.targets[0]) in kept
        for part in nodes_in(node.value)
    }


def _inside(node: ast.If) -> list[ast.AST]:
    """What is done where a condition holds. `if self.training` is no setting."""
    if "training" in names_in(node.test):
        return []
    return [part for statement in (*node.body, *node.orelse) for part in nodes_in(statement)]


def _builds_elsewhere(node: ast.Call, survey: Survey) -> bool:
    """`models.resnet18()`, `build_encoder()`: a part of the model may come from there."""
    name = last_name(node.func)
    if isinstance(node.func, ast.Name):
        return (
            name not in survey.functions
            and re.search(r"model|net|encoder|decoder|build|make|create", name) is not None
        )
    return (
        re.search(r"resnet|vgg|densenet|efficientnet|vit|from_pretrained|create_model|build", name)
        is not None
    )

"""One pass over a file: what is defined, who mentions whom, and what each statement does by itself."""

from __future__ import annotations

import ast
from dataclasses import field, replace

from gradclinic.frozen import record
from gradclinic.static import words
from gradclinic.static.abilities import ACTS, Can, named
from gradclinic.static.syntax import (
    PART_FIELDS,
    bound_by_import,
    children,
    command_line_default,
    goes_over_models,
    imports_ignite,
    last_name,
    names_in,
    reached_by,
    targets_of,
    torch_method,
    unfreezes,
)
from gradclinic.static.values import FunctionNode

_HANDED_OUT = frozenset({"backward", "zero_grad", "unscale_"})
_SYNC_SWITCHES = frozenset({"require_backward_grad_sync", "set_requires_gradient_sync"})
_SYNC_WORDS = _SYNC_SWITCHES | {"no_sync"}
_BLOCKS = frozenset({"body", "orelse", "finalbody"})
_PARTS_WITH_BLOCKS = frozenset({"handlers", "cases"})


@record
class Facts:
    """What one piece of code does by itself, before what it calls is added."""

    can: int = Can.NOTHING
    mentions: set[str] = field(default_factory=set)
    reaches: set[str] = field(default_factory=set)
    """Those that may be functions it calls or hands on, attributes with a dot before them: in `cfg.train.lr`
    nothing called `train` is."""
    assigns: set[str] = field(default_factory=set)
    """Names it gives a value to, or whose value it may change."""
    calls_out: bool = False
    """It calls something that might do more than its name says."""
    exposes: set[str] = field(default_factory=set)
    """Names within the reach of such calls."""
    applies: bool = False
    """It, or a statement inside it, calls something that might be any object."""
    loops: list[ast.For | ast.AsyncFor | ast.While] = field(default_factory=list)
    returns: bool = False
    hands_out: bool = False
    """It speaks of a method that clears or unscales without calling it: whoever has it may."""
    hands_scaler: bool = False
    """A call in it is given a scaler."""
    periods: list[int | str] = field(default_factory=list)
    """What it divides by to ask for a remainder, numbers and names, without the statements inside it."""

    def add(self, other: Facts) -> None:
        self.can |= other.can
        self.mentions |= other.mentions
        self.reaches |= other.reaches
        self.assigns |= other.assigns
        self.exposes |= other.exposes
        self.applies |= other.applies
        self.loops += other.loops
        self.returns |= other.returns


@record
class Names:
    """The names that one statement mentions and assigns to, for one that has others inside it."""

    mentions: set[str]
    assigns: set[str]


def _without_gradients(node: ast.expr) -> bool:
    return last_name(node) in ("no_grad", "inference_mode")


def _evaluates(facts: Facts) -> bool:
    """Whether it measures something, or lets a model write what is measured then."""
    return "generate" in facts.mentions or any(map(words.MEASURES.search, facts.mentions | facts.assigns))


def _runs_a_model(facts: Facts) -> bool:
    return any(map(words.MODEL_NAME.search, facts.mentions))


def _only_measures(function: FunctionNode) -> bool:
    """`validate(...)`, and `accuracy_of(model, loader)` that goes over data."""
    if words.EVALUATES.match(function.name):
        return True
    return words.TAKES_ACCURACY.search(function.name) is not None and any(
        isinstance(part, (ast.For, ast.AsyncFor))
        and any(words.LOADER_NAME.search(name) for name in names_in(part.iter))
        for part in function.body
    )


def _is_mode(target: ast.expr) -> bool:
    """`module.training`; what a class calls its own `self.training` may be anything."""
    return (
        isinstance(target, ast.Attribute) and target.attr == "training" and last_name(target.value) != "self"
    )


def _receiver(node: ast.expr) -> str:
    """What a method is called on; `state["scaler"]` is no `state`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        key = node.slice.value
        if isinstance(key, str) and words.SCALER_NAME.search(key):
            return key
    return last_name(node)


def _is_given_a_scaler(call: ast.Call) -> bool:
    """Which it may then use, whatever its name says: `prepare_gradients(optimizer, scaler)`."""
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    return any(words.SCALER_NAME.search(_receiver(value)) for value in given)


class Collection:
    """What was seen in the trees that were added to it."""

    def __init__(self) -> None:
        self.functions: dict[str, list[FunctionNode]] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.qualnames: dict[FunctionNode, str] = {}
        self.owners: dict[FunctionNode, ast.ClassDef] = {}
        self.nested: set[FunctionNode] = set()
        self.methods_of: dict[str, set[str]] = {}
        """Method names called on each receiver, by the last part of its name."""
        self.applied: set[str] = set()
        """What is called like a function, by the last part of its name."""
        self.defaults: dict[str, float] = {}
        """Numbers that options of the command line have unless they are given."""
        self.unfreezes = False
        """Whether anything in the file makes parameters require a gradient again."""
        self.switches_gradients = False
        """Whether `set_grad_enabled()` is called: as a statement it holds for all that comes after it."""
        self.sets_modes_by_hand = False
        """Whether `module.training = False` is written somewhere, which is not followed."""
        self.defers = False
        """Whether ranks may exchange gradients at times that the file decides in ways not followed."""
        self.privately = False
        """Whether an engine of differential privacy is at work, which takes the losses of a batch apart."""
        self.hooks_gradients = False
        """Whether gradients are changed on their way, by hooks on losses or parameters."""
        self.ignites = False
        """Whether Ignite is imported, whose engines are run."""
        self.handles: set[str] = set()
        """What functions are kept by that clear or unscale when they are called; attributes with a dot."""
        self.hold_scalers: set[str] = set()
        """What was made of a scaler: `state = State(optimizer, scaler)`, whose methods may use it."""
        self.constants: dict[str, int] = {}
        """Names, by their last part, that somewhere stand for a whole number."""
        self.pieces: dict[ast.AST, Facts] = {}
        """What each statement and function does by itself, with the statements inside it."""
        self.own: list[tuple[ast.stmt, Names | Facts]] = []
        """Every statement with the names in it, without those of the statements inside it."""
        self._models: set[str] = set()
        """What loops over models call each of them: `for m in self.model_parts: m.train()`."""
        self._functions: set[ast.expr] = set()
        """What is called, of the calls looked at so far."""
        self._quiet = 0
        """Depth of what is done without gradients, of the part that is looked at."""
        self._measuring = 0
        """The same for functions that say they measure."""

    def add(self, tree: ast.Module) -> None:
        self._block(tree.body, "", None, in_function=False)

    def of_expression(self, node: ast.expr) -> Facts:
        facts = Facts()
        self._expression(node, facts)
        return facts

    def _block(
        self, body: list[ast.stmt], scope: str, owner: ast.ClassDef | None, *, in_function: bool
    ) -> Facts:
        facts = Facts()
        for statement in body:
            facts.add(self._statement(statement, scope, owner, in_function))
        return facts

    def _statement(self, node: ast.stmt, scope: str, owner: ast.ClassDef | None, in_function: bool) -> Facts:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._function(node, scope, owner, in_function)
            return Facts()
        if isinstance(node, ast.ClassDef):
            self.classes[node.name] = node
            return self._block(node.body, f"{scope}{node.name}.", node, in_function=False)
        facts = Facts()
        self._of_its_kind(node, facts)
        inner: list[Facts] = []
        quiet = isinstance(node, ast.With) and any(_without_gradients(i.context_expr) for i in node.items)
        self._quiet += quiet
        for name in PART_FIELDS[type(node)]:
            value = getattr(node, name)
            if name in _BLOCKS:
                inner += [self._statement(item, scope, owner, in_function) for item in value]
            elif name in _PARTS_WITH_BLOCKS:
                inner += [self._block(item.body, scope, owner, in_function=in_function) for item in value]
            elif name == "items":
                for item in value:
                    self._expression(item.context_expr, facts)
                    if item.optional_vars is not None:
                        facts.assigns.update(names_in(item.optional_vars))
            elif type(value) is list:
                for item in value:
                    if isinstance(item, ast.expr):
                        self._expression(item, facts)
            elif value is not None:
                self._expression(value, facts)
        self._quiet -= quiet
        targets = targets_of(node)
        facts.assigns.update(*(names_in(target) for target in targets))
        if facts.hands_scaler:
            self.hold_scalers.update(*map(names_in, targets))
        over = reached_by(node.iter) if isinstance(node, (ast.For, ast.AsyncFor)) else set()
        if facts.hands_out or over & self.handles:
            facts.can |= Can.ACT
            self.handles.update(*map(reached_by, targets))
        if (self._quiet and _evaluates(facts)) or (self._measuring and _runs_a_model(facts)):
            facts.can |= Can.ACT
        if facts.calls_out:
            facts.exposes = set(facts.mentions)
        waits = _SYNC_SWITCHES if isinstance(node, ast.With) else _SYNC_WORDS
        if not (waits.isdisjoint(facts.mentions) and waits.isdisjoint(facts.assigns)):
            self.defers = True
        self.own.append((node, Names(set(facts.mentions), set(facts.assigns)) if inner else facts))
        for part in inner:
            facts.add(part)
        self.pieces[node] = facts
        if not isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return facts
        if not facts.returns:
            facts.can &= ~Can.LEAVE
        return replace(facts, loops=[node])

    def _of_its_kind(self, node: ast.stmt, facts: Facts) -> None:
        """What a statement does by being one, whatever stands in it."""
        if isinstance(node, ast.Assign):
            first = last_name(node.targets[0])
            if isinstance(node.value, ast.Constant) and type(node.value.value) is int:
                for target in node.targets:
                    self.constants[last_name(target)] = node.value.value
            if first == "requires_grad":
                facts.can |= Can.FREEZE
                self.unfreezes = self.unfreezes or unfreezes(node)
            elif first == "training" and _is_mode(node.targets[0]):
                self.sets_modes_by_hand = True
        elif isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Call) and words.makes_ready(last_name(node.value.func)):
                facts.calls_out = True
        elif isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            facts.can |= Can.LEAVE
            facts.returns = isinstance(node, ast.Return)
        elif isinstance(node, ast.For):
            if isinstance(node.target, ast.Name) and goes_over_models(node):
                self._models.add(node.target.id)
        elif isinstance(node, ast.Raise):
            facts.can |= Can.STOP
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.ignites = self.ignites or imports_ignite(node)
            facts.assigns.update(bound_by_import(node))  # `try: from apex import amp`

    def _function(
        self, node: FunctionNode, scope: str, owner: ast.ClassDef | None, in_function: bool
    ) -> None:
        qualname = f"{scope}{node.name}"
        self.functions.setdefault(node.name, []).append(node)
        self.qualnames[node] = qualname
        if in_function:
            self.nested.add(node)
        elif owner is not None:
            self.owners[node] = owner
        quiet = any(map(_without_gradients, node.decorator_list))
        measures = _only_measures(node)
        self._quiet += quiet
        self._measuring += measures
        self.pieces[node] = self._block(node.body, f"{qualname}.", None, in_function=True)
        self._quiet -= quiet
        self._measuring -= measures

    def _expression(self, root: ast.expr, facts: Facts) -> None:
        stack: list[ast.AST] = [root]
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is ast.Name:
                facts.mentions.add(node.id)  # type: ignore[attr-defined]
                facts.reaches.add(node.id)  # type: ignore[attr-defined]
            elif kind is ast.Constant:
                facts.hands_out |= node.value.__class__ is str and node.value in _HANDED_OUT  # type: ignore[attr-defined]
            elif kind is ast.Attribute:
                assert isinstance(node, ast.Attribute)
                if node.attr in _HANDED_OUT and node not in self._functions:
                    facts.hands_out = True
                    facts.can |= ACTS[node.attr]
                if not self._is_torchs(node):
                    facts.reaches.add(f".{node.attr}")
                stack.append(self._attributes(node, facts))
            elif kind is ast.Call:
                assert isinstance(node, ast.Call)
                self._functions.add(node.func)
                self._call(node, facts)
                stack.append(node.func)
                stack += node.args
                stack += [keyword.value for keyword in node.keywords]
            else:
                if kind is ast.Lambda:
                    facts.hands_out |= not _HANDED_OUT.isdisjoint(names_in(node))
                elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                    self._modulus(node, facts)
                stack += children(node)

    def _attributes(self, node: ast.Attribute, facts: Facts) -> ast.expr:
        """What the attribute, or the last of several in a row, is taken of."""
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            if not self._is_torchs(inner):
                facts.mentions.add(inner.attr)
            if inner.attr in ("grad", "_grad", "sync_gradients"):
                facts.can |= Can.ACT | ACTS[inner.attr]
            inner = inner.value
        return inner

    def _is_torchs(self, node: ast.Attribute) -> bool:
        called_so = isinstance(node.value, ast.Name) and node.value.id in self._models
        return torch_method(node) or (called_so and node.attr in ("train", "eval"))

    def _modulus(self, node: ast.BinOp, facts: Facts) -> None:
        if isinstance(node.left, (ast.Constant, ast.JoinedStr)):
            return
        facts.can |= Can.GUARD
        if isinstance(node.right, ast.Constant) and type(node.right.value) is int:
            facts.periods.append(node.right.value)
        else:
            facts.periods.append(last_name(node.right))

    def _call(self, node: ast.Call, facts: Facts) -> None:
        called = last_name(node.func)
        self.applied.add(called)
        if called == "add_argument":
            default = command_line_default(node)
            if default is not None:
                self.defaults[default[0]] = default[1]
        if called == "requires_grad_":
            facts.can |= Can.FREEZE
        elif called in ("set_grad_enabled", "_set_grad_enabled", "__enter__"):
            self.switches_gradients = True
        elif called.startswith(("PrivacyEngine", "make_private")):
            self.privately = True
        elif called in ("register_hook", "register_post_accumulate_grad_hook"):
            self.hooks_gradients = True
        if unfreezes(node):
            self.unfreezes = True
        if isinstance(node.func, ast.Attribute):
            receiver = _receiver(node.func.value)
            self.methods_of.setdefault(receiver, set()).add(called)
            if called in ("scale", "update") and words.SCALER_NAME.search(receiver):
                facts.can |= Can.ACT | Can.TELL
            if self.ignites and called in ("run", "add_event_handler"):
                facts.can |= Can.ACT
            if called == "step" and words.NOT_AN_OPTIMIZER.search(receiver):
                return
            if called == "exit" and receiver == "sys":
                facts.can |= Can.STOP
        elif called in ("exit", "quit"):
            facts.can |= Can.STOP
        told = named(called)
        facts.can |= told.can
        by_any_name = called == "getattr" and isinstance(node.func, ast.Call)
        facts.hands_scaler = facts.hands_scaler or _is_given_a_scaler(node)
        facts.calls_out = facts.calls_out or told.calls_out or by_any_name or facts.hands_scaler
        facts.applies = facts.applies or facts.calls_out
        if told.scales and len(node.args) + len(node.keywords) >= 2:
            facts.can |= Can.ACT | Can.TELL | Can.BACKWARD | Can.STEP

"""A first look over a file: what is defined, who mentions whom, and where something can happen.

The walk itself is exact but costs time for every branch and iteration; the survey tells it which parts of a
file can touch gradients at all, so that only those are branched and unrolled.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from types import MappingProxyType

from gradclinic.facts import Location
from gradclinic.frozen import record
from gradclinic.static import words
from gradclinic.static.abilities import ACTS, Branches, Can, named
from gradclinic.static.syntax import (
    PART_FIELDS,
    children,
    command_line_default,
    is_listed,
    is_window,
    last_name,
    names_in,
    targets_of,
    torch_method,
    unfreezes,
)
from gradclinic.static.values import FunctionNode, Module

_HAPPENS = Can.ACT | Can.LEAVE | Can.FETCH | Can.FREEZE
_SYNC_SWITCHES = frozenset({"require_backward_grad_sync", "set_requires_gradient_sync"})
_SYNC_WORDS = _SYNC_SWITCHES | {"no_sync"}


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
    loops: list[ast.For | ast.AsyncFor | ast.While] = field(default_factory=list)
    returns: bool = False
    periods: list[int | str] = field(default_factory=list)
    """What it divides by to ask for a remainder, numbers and names, without the statements inside it."""

    def add(self, other: Facts) -> None:
        self.can |= other.can
        self.mentions |= other.mentions
        self.reaches |= other.reaches
        self.assigns |= other.assigns
        self.exposes |= other.exposes
        self.loops += other.loops
        self.returns |= other.returns


@record
class Names:
    """The names that one statement mentions and assigns to, for one that has others inside it."""

    mentions: set[str]
    assigns: set[str]


def _without_gradients(node: ast.expr) -> bool:
    return last_name(node) in ("no_grad", "inference_mode")


class Survey:
    def __init__(self, tree: ast.Module, modules: Mapping[str, Module] = MappingProxyType({})) -> None:
        self.modules = modules
        """Other modules of the project that the file imports from, as it spells them."""
        self.functions: dict[str, list[FunctionNode]] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.qualnames: dict[FunctionNode, str] = {}
        self.owners: dict[FunctionNode, ast.ClassDef] = {}
        self.nested: set[FunctionNode] = set()
        self.methods_of: dict[str, set[str]] = {}
        """Method names called on each receiver, by the last part of its name."""
        self.applied: set[str] = set()
        """What is called like a function, by the last part of its name."""
        self.roles: dict[str, str] = {}
        """What each name stands for, as far as it has been asked."""
        self.names: dict[ast.AST, frozenset[str]] = {}
        """All names in a piece of code, where they have been asked for."""
        self.places: dict[tuple[ast.AST, str], Location] = {}
        """Where pieces of code stand, by the function they are walked in, as far as it has been asked."""
        self.layers: dict[tuple[ast.ClassDef, int], tuple[str, ...] | None] = {}
        """Layers that care for the mode, of each class where they have been asked for, by depth."""
        self.defaults: dict[str, float] = {}
        """Numbers that options of the command line have unless they are given."""
        self.unfreezes = False
        """Whether anything in the file makes parameters require a gradient again."""
        self.differentiates: bool | None = None
        """Whether a module in it computes gradients itself; None until that is asked."""
        self.switches_gradients = False
        """Whether `set_grad_enabled()` is called: as a statement it holds for all that comes after it."""
        self.defers = False
        """Whether ranks may exchange gradients at times that the file decides in ways not followed."""
        self._constants: dict[str, int] = {}
        self._quiet = 0
        """Depth of what is done without gradients, of the part that is looked at."""
        self.branches: dict[ast.If, Branches] = {}
        self.exits: set[ast.If] = set()
        """Conditions that end a loop before an iteration has done anything."""
        self._facts: dict[ast.AST, Facts] = {}
        self._can: dict[ast.AST, int] = {}
        self._beats: dict[ast.AST, bool] = {}
        self.own: list[tuple[ast.stmt, Names | Facts]] = []
        """Every statement with the names in it, without those of the statements inside it."""
        for other in {module.path: module.tree for module in modules.values()}.values():
            self._block(other.body, "", None, in_function=False)
        self.foreign = set(self.qualnames)
        """Functions of those other modules."""
        self._block(tree.body, "", None, in_function=False)
        defined = self.functions.keys() | self.classes.keys()
        self._callable = defined | {f".{name}" for name in defined}
        self.moduli = self._moduli()
        self.guarded = any(facts.can & Can.GUARD for facts in self._facts.values())
        """Whether anything in the file is done every k-th time only."""

    # Collecting, one pass over the tree.

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
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            facts.can |= Can.LEAVE
            facts.returns = isinstance(node, ast.Return)
        elif isinstance(node, ast.Raise):
            facts.can |= Can.STOP
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and type(node.value.value) is int
        ):
            for target in node.targets:
                self._constants[last_name(target)] = node.value.value
        if isinstance(node, ast.Assign) and last_name(node.targets[0]) == "requires_grad":
            facts.can |= Can.FREEZE
            self.unfreezes = self.unfreezes or unfreezes(node)
        inner: list[Facts] = []
        quiet = isinstance(node, ast.With) and any(_without_gradients(i.context_expr) for i in node.items)
        self._quiet += quiet
        for name in PART_FIELDS[type(node)]:
            value = getattr(node, name)
            if isinstance(value, ast.expr):
                self._expression(value, facts)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.stmt):
                        inner.append(self._statement(item, scope, owner, in_function))
                    elif isinstance(item, (ast.ExceptHandler, ast.match_case)):
                        inner.append(self._block(item.body, scope, owner, in_function=in_function))
                    elif isinstance(item, ast.expr):
                        self._expression(item, facts)
                    elif isinstance(item, ast.withitem):
                        self._expression(item.context_expr, facts)
                        if item.optional_vars is not None:
                            facts.assigns.update(names_in(item.optional_vars))
        self._quiet -= quiet
        facts.assigns.update(*(names_in(target) for target in targets_of(node)))
        if self._quiet and any(words.MEASURES.search(name) for name in facts.mentions | facts.assigns):
            facts.can |= Can.ACT  # what it measures is an evaluation
        if facts.calls_out:
            facts.exposes = set(facts.mentions)
        waits = _SYNC_SWITCHES if isinstance(node, ast.With) else _SYNC_WORDS
        if not (waits.isdisjoint(facts.mentions) and waits.isdisjoint(facts.assigns)):
            self.defers = True
        self.own.append((node, Names(set(facts.mentions), set(facts.assigns)) if inner else facts))
        for part in inner:
            facts.add(part)
        self._facts[node] = facts
        if not isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return facts
        if not facts.returns:
            facts.can &= ~Can.LEAVE
        return replace(facts, loops=[node])

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
        self._quiet += quiet
        self._facts[node] = self._block(node.body, f"{qualname}.", None, in_function=True)
        self._quiet -= quiet

    def _expression(self, root: ast.expr, facts: Facts) -> None:
        stack: list[ast.AST] = [root]
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is ast.Name:
                facts.mentions.add(node.id)  # type: ignore[attr-defined]
                facts.reaches.add(node.id)  # type: ignore[attr-defined]
            elif kind is ast.Constant:
                continue
            elif isinstance(node, ast.Attribute):
                if not torch_method(node):
                    facts.reaches.add(f".{node.attr}")
                stack.append(self._attributes(node, facts))
            else:
                if isinstance(node, ast.Call):
                    self._call(node, facts)
                elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                    self._modulus(node, facts)
                stack += children(node)

    def _attributes(self, node: ast.Attribute, facts: Facts) -> ast.expr:
        """What the attribute, or the last of several in a row, is taken of."""
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            if not torch_method(inner):
                facts.mentions.add(inner.attr)
            if inner.attr in ("grad", "sync_gradients"):
                facts.can |= Can.ACT | ACTS[inner.attr]
            inner = inner.value
        return inner

    def _modulus(self, node: ast.BinOp, facts: Facts) -> None:
        if isinstance(node.left, (ast.Constant, ast.JoinedStr)):
            return
        facts.can |= Can.GUARD
        if isinstance(node.right, ast.Constant) and type(node.right.value) is int:
            facts.periods.append(node.right.value)
        else:
            facts.periods.append(last_name(node.right))

    def _moduli(self) -> set[int]:
        """The periods in which something may happen: not those of `if size % 8: raise` or of a print."""
        found: set[int] = set()
        for node, facts in list(self._facts.items()):
            idle = isinstance(node, ast.If) and not self.can_any([*node.body, *node.orelse]) & _HAPPENS
            for period in facts.periods if not idle else ():
                found.add(self._constants.get(period, 0) if isinstance(period, str) else period)
        return found

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
        if unfreezes(node):
            self.unfreezes = True
        if isinstance(node.func, ast.Attribute):
            receiver = last_name(node.func.value)
            self.methods_of.setdefault(receiver, set()).add(called)
            if called in ("scale", "update") and words.SCALER_NAME.search(receiver):
                facts.can |= Can.ACT | Can.TELL
            if called == "step" and words.NOT_AN_OPTIMIZER.search(receiver):
                return
            if called in ("zero_", "exit") and receiver == "sys":
                facts.can |= Can.STOP
        told = named(called)
        facts.can |= told.can
        by_any_name = called == "getattr" and isinstance(node.func, ast.Call)
        facts.calls_out = facts.calls_out or told.calls_out or by_any_name
        if told.scales and len(node.args) + len(node.keywords) >= 2:
            facts.can |= Can.ACT | Can.TELL | Can.BACKWARD | Can.STEP

    # Asking, with what is called added.

    def can(self, node: ast.AST) -> int:
        """What `node` may do, with the functions of this file that it mentions."""
        known = self._can.get(node)
        if known is not None:
            return known
        facts = self._facts.get(node)
        if facts is None:
            facts = Facts()
            if isinstance(node, ast.expr):
                self._expression(node, facts)
            self._facts[node] = facts
        self._can[node] = facts.can
        total = facts.can | self._called(facts.reaches)
        self._can[node] = total
        return total

    def facts(self, node: ast.AST) -> Facts | None:
        return self._facts.get(node)

    def mentions(self, node: ast.AST) -> set[str]:
        facts = self._facts.get(node)
        return facts.mentions if facts else set()

    def can_any(self, body: Iterable[ast.stmt]) -> int:
        total = Can.NOTHING
        for statement in body:
            total |= self.can(statement)
        return total

    def _called(self, names: set[str]) -> int:
        total = Can.NOTHING
        for function in self._defined(names):
            total |= self.can(function)
        return total & ~(Can.LEAVE | Can.STOP)

    def _defined(self, names: set[str]) -> list[FunctionNode]:
        found: list[FunctionNode] = []
        for written in names & self._callable:
            name = written.removeprefix(".")
            # An attribute of something is no function of the module itself.
            bare = name == written
            found += [f for f in self.functions.get(name, ()) if bare or self._is_member(f)]
            if name in self.classes:
                found += [
                    f for f in self.functions.get("__init__", ()) if self.owners.get(f) is self.classes[name]
                ]
        if "__call__" in self.functions and names:
            found += self.functions["__call__"]
        return found

    def _is_member(self, function: FunctionNode) -> bool:
        return function in self.owners or function in self.nested or function in self.foreign

    def beats_inside(self, node: ast.AST) -> bool:
        """Whether batches are fetched inside: by a call, or by a loop that goes over data."""
        known = self._beats.get(node)
        if known is not None:
            return known
        self._beats[node] = False
        facts = self._facts.get(node) or Facts()
        found = (
            bool(facts.can & Can.FETCH)
            or any(
                self.beats_inside(loop) or self.owns_beat(loop) for loop in facts.loops if loop is not node
            )
            or any(self.beats_inside(function) for function in self._defined(facts.reaches))
        )
        self._beats[node] = found
        return found

    def owns_beat(self, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
        """Whether each iteration of `loop` is a micro-batch of its own."""
        can = self.can(loop)
        if not can & Can.BACKWARD or self.beats_inside(loop):
            return False
        if isinstance(loop, ast.While):
            return bool(can & Can.STEP)
        text = " ".join(names_in(loop.iter))
        if words.ACCUMULATION_NAME.search(text):
            return True
        if isinstance(loop.iter, ast.Call) and last_name(loop.iter.func) == "range":
            return bool(can & Can.STEP)
        if words.LOADER_NAME.search(text):
            return True
        return bool(can & Can.STEP) and not words.SEVERAL_LOSSES.search(text)

    def depth(self, loop: ast.AST) -> int:
        """How many levels of batch loops are nested inside."""
        return self._depth(loop, set())

    def _depth(self, node: ast.AST, seen: set[ast.AST]) -> int:
        if node in seen:
            return 0
        seen.add(node)
        facts = self._facts.get(node) or Facts()
        inner = [
            (not is_listed(loop)) + self._depth(loop, seen)
            for loop in facts.loops
            if loop is not node and (self.beats_inside(loop) or self.owns_beat(loop)) and not is_window(loop)
        ]
        called = [self._depth(function, seen) for function in self._defined(facts.reaches)]
        return max([0, *inner, *called])

"""A first look over a file: which parts of it can touch gradients at all.

The walk itself is exact but costs time for every branch and iteration; the survey tells it what may happen
where, with what is called added, so that only the parts that matter are branched and unrolled.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType

from gradclinic.facts import Location
from gradclinic.static import words
from gradclinic.static.abilities import ACTS, Branches, Can
from gradclinic.static.collection import Collection, Facts
from gradclinic.static.imports import bindings
from gradclinic.static.syntax import (
    asks_at_zero,
    is_listed,
    is_window,
    last_name,
    names_in,
    nodes_in,
    reached_at,
    set_to_zero,
)
from gradclinic.static.values import FunctionNode, Lib, Module
from gradclinic.static.windows import divides_rate, keeps_whole

_MORE_THAN_BUILDS = Can.TELL | Can.MODE | Can.BACKWARD | Can.STEP | Can.FETCH | Can.FREEZE | Can.GUARD
_ACTING = ACTS.keys() | words.CLIPS
_DROPOUT_SETTING = words.Pattern(
    r"(hidden|attention|attn|embd|resid|classifier)\w*_(dropout|pdrop)|dropout_prob$|^(dropout_rate|activation_dropout)$"
)
_ALTERS_LAYERS = words.Pattern(
    r"(disable|remove|zero|strip|freeze|fuse|convert(?!_sync)|replace|patch|swap|set|no)\w*_(dropout|norm|bn|batch_?norm)|"
    r"_to_(gn|group_?norm|ln)$",
    re.I,
)
_SYNCS = frozenset({"accumulate", "sync_gradients"})
HAPPENS = Can.ACT | Can.LEAVE | Can.FETCH | Can.FREEZE


class Survey(Collection):
    def __init__(self, tree: ast.Module, modules: Mapping[str, Module] = MappingProxyType({})) -> None:
        super().__init__()
        self.modules = modules
        """Other modules of the project that the file imports from, as it spells them."""
        self.roles: dict[str, str] = {}
        """What each name stands for, as far as it has been asked."""
        self.names: dict[ast.AST, frozenset[str]] = {}
        """All names in a piece of code, where they have been asked for."""
        self.places: dict[tuple[ast.AST, str], Location] = {}
        """Where pieces of code stand, by the function they are walked in, as far as it has been asked."""
        self.layers: dict[tuple[ast.ClassDef, int], tuple[str, ...] | None] = {}
        """Layers that care for the mode, of each class where they have been asked for, by depth."""
        self.differentiates: bool | None = None
        """Whether a module in it computes gradients itself; None until that is asked."""
        self.computing: dict[str, bool] = {}
        """Whether all methods of a name run layers of their models, as far as it has been asked."""
        self.branches: dict[ast.If, Branches] = {}
        self.exits: set[ast.If] = set()
        """Conditions that end a loop before an iteration has done anything,"""
        self.last_exits: set[ast.If] = set()
        """and those that do when it has done all."""
        self.tree = tree
        self.purposes: dict[tuple[ast.AST, tuple[ast.AST, ...]], bool] = {}
        """Whether forwards in passes that train nothing serve the training, as far as it has been asked."""
        self.trees = [tree, *{module.path: module.tree for module in modules.values()}.values()]
        self._can: dict[ast.AST, int] = {}
        self._behind: dict[str, list[FunctionNode]] = {}
        """The functions that are meant by a name, as far as it has been asked."""
        self._builders: dict[FunctionNode, bool] = {}
        self._beats: dict[ast.AST, bool] = {}
        self._depths: dict[ast.AST, int] = {}
        for other in self.trees[1:]:
            self.add(other)
        self.foreign = set(self.qualnames)
        """Functions of those other modules."""
        self.add(tree)
        defined = self.functions.keys() | self.classes.keys()
        self._callable = defined | {f".{name}" for name in defined}
        self._namesakes = {
            name
            for _, own in self.own
            for name in own.assigns & defined
            if isinstance(own, Facts) and f".{name}" in own.reaches
        }
        """What is called as the attribute it is taken from: `train_step = torch.compile(self.train_step)`."""
        self._called_objects = self._of_objects("__call__")
        self.moduli = self._moduli()
        tallied = list(self._tallied())
        self.tallies = set(map(last_name, tallied))
        """What is summed up to a limit, at which a step comes and it is set to zero again."""
        self.tallied = set(map(ast.unparse, tallied))
        """The same as it is written."""
        self.guarded = bool(self.tallies) or any(map(self._guards, self.pieces))
        """Whether anything that matters is done every k-th time only."""
        self.steps_first = any(map(self._steps_first, self.pieces)) if self.guarded else False
        """Whether the first of every k batches may be the one that steps."""

    @cached_property
    def imports(self) -> dict[str, str]:
        """What each name that is imported stands for."""
        nodes = [node for tree in self.trees for node in tree.body]
        found = [bindings(node) for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        return {
            name: value.name for names in found for name, value in names.items() if isinstance(value, Lib)
        }

    @cached_property
    def chooses_dropout(self) -> bool:
        """Whether it speaks of settings that say how much a model drops, which may be nothing."""
        return any(
            _DROPOUT_SETTING.search(word)
            for tree in self.trees
            for node in nodes_in(tree)
            for word in (getattr(node, "attr", ""), getattr(node, "arg", ""), getattr(node, "value", ""))
            if isinstance(word, str)
        )

    @cached_property
    def alters_layers(self) -> bool:
        """Whether it calls what may take dropout or batch norm out of a model: `disable_dropout(model)`."""
        methods = {method for called in self.methods_of.values() for method in called}
        return any(map(_ALTERS_LAYERS.search, self.applied | methods))

    @cached_property
    def needed(self) -> set[str]:
        """Names that something on the tape may depend on, through any chain of assignments."""
        needed = set(self.hold_scalers)
        for node, own in self.own:
            if self.can(node) & HAPPENS:
                needed |= own.mentions
        waiting = self.own
        grown = True
        while grown:
            grown = False
            rest = []
            for node, own in waiting:
                if own.assigns.isdisjoint(needed):
                    rest.append((node, own))
                elif not own.mentions <= needed:
                    needed |= own.mentions
                    grown = True
            waiting = rest
        return needed

    @cached_property
    def telling(self) -> int:
        """What a root must be able to do: in which mode a model is evaluated matters where one is trained."""
        trains = any(facts.can & (Can.BACKWARD | Can.STEP) for facts in self.pieces.values())
        return Can.TELL | Can.MODE if trains else Can.TELL

    @cached_property
    def steps_on_nothing(self) -> bool:
        """Whether something steps and no backward is in sight: any call might hide it then."""
        able = 0
        for facts in self.pieces.values():
            able |= facts.can
        return able & (Can.STEP | Can.BACKWARD) == Can.STEP

    @cached_property
    def scales_elsewhere(self) -> bool:
        """Whether losses may be summed over a window: the rate is divided by its length, or hooks divide."""
        return self.hooks_gradients or divides_rate(self.trees, self._windows)

    @cached_property
    def keeps_whole_windows(self) -> bool:
        return keeps_whole(self.trees, self._windows)

    @cached_property
    def _windows(self) -> set[str]:
        """Names of what is counted up to, by which something is done every so many times."""
        guards = [facts.periods for node, facts in self.pieces.items() if isinstance(node, ast.If)]
        return {name for periods in guards for name in periods if isinstance(name, str) and name}

    def _moduli(self) -> set[int]:
        """The periods in which something may happen: not those of `if size % 8: raise` or of a print."""
        found: set[int] = set()
        for node, facts in list(self.pieces.items()):
            for period in facts.periods if not self._idles(node) else ():
                found.add(self.constants.get(period, 0) if isinstance(period, str) else period)
        return found

    def _idles(self, node: ast.AST) -> bool:
        """`if i % 100 == 0: print(loss)`, or an assertion."""
        if isinstance(node, ast.If):
            return not self.can_any([*node.body, *node.orelse]) & HAPPENS
        return isinstance(node, ast.Assert)

    def _guards(self, node: ast.AST) -> bool:
        facts = self.pieces[node]
        if not facts.can & Can.GUARD:
            return False
        # An `if` that idles may still set a flag by which another one steps.
        asks = facts.periods and not (self._idles(node) and facts.assigns.isdisjoint(self.needed))
        return bool(asks) or not facts.mentions.isdisjoint(_SYNCS)

    def _tallied(self) -> Iterator[ast.expr]:
        for node in list(self.pieces):
            if isinstance(node, ast.If) and self.can_any(node.body) & Can.STEP:
                reached = reached_at(node.test)
                yield from (zero for zero in set_to_zero(node.body) if last_name(zero) in reached)

    def _steps_first(self, node: ast.AST) -> bool:
        """`if i % k == 0: optimizer.step()`, where `i + 1` would be the end of a window."""
        if not isinstance(node, ast.If) or not self.pieces[node].can & Can.GUARD:
            return False
        if not asks_at_zero(node.test) or any(map(words.EPOCH_NAME.search, names_in(node.test))):
            return False
        return self.can_any(node.body) & (Can.STEP | Can.BACKWARD) == Can.STEP

    def can(self, node: ast.AST) -> int:
        """What `node` may do, with the functions of this file that it mentions."""
        known = self._can.get(node)
        if known is not None:
            return known
        facts = self.pieces.get(node)
        if facts is None:
            facts = self.of_expression(node) if isinstance(node, ast.expr) else Facts()
            self.pieces[node] = facts
        self._can[node] = facts.can
        total = facts.can | self._called(facts)
        self._can[node] = total
        return total

    def merely_builds(self, function: FunctionNode) -> bool:
        """Whether all that it does is to build optimizers and schedules: which of them, its value tells."""
        known = self._builders.get(function)
        if known is None:
            self._builders[function] = True  # of one that calls itself, the rest decides
            facts = self.pieces.get(function) or Facts()
            known = self._builders[function] = (
                not self.can(function) & _MORE_THAN_BUILDS
                and facts.mentions.isdisjoint(_ACTING)
                and all(map(self.merely_builds, self._defined(facts)))
            )
        return known

    def facts(self, node: ast.AST) -> Facts | None:
        return self.pieces.get(node)

    def mentions(self, node: ast.AST) -> set[str]:
        facts = self.pieces.get(node)
        return facts.mentions if facts else set()

    def can_any(self, body: Iterable[ast.stmt]) -> int:
        total = Can.NOTHING
        for statement in body:
            total |= self.can(statement)
        return total

    def _called(self, facts: Facts) -> int:
        total = Can.NOTHING
        for function in self._defined(facts):
            total |= self.can(function)
        if not self.handles.isdisjoint(facts.reaches):
            total |= Can.ACT
        return total & ~(Can.LEAVE | Can.STOP)

    def _defined(self, facts: Facts) -> list[FunctionNode]:
        """The functions of the project that a piece of code may call."""
        found: list[FunctionNode] = []
        for written in sorted(facts.reaches & self._callable):
            known = self._behind.get(written)
            if known is None:
                known = self._behind[written] = self._called_so(written)
            found += known
        if facts.applies:
            found += self._called_objects
        return found

    def _called_so(self, written: str) -> list[FunctionNode]:
        """An attribute of something is no function of the module itself, nor is a bare name a method."""
        name = written.removeprefix(".")
        fits = self._is_bare if name == written else self._is_member
        found = [function for function in self.functions.get(name, ()) if fits(function)]
        if name in self.classes:
            makers = self.functions.get("__init__", ())
            found += [maker for maker in makers if self.owners.get(maker) is self.classes[name]]
        return found

    def _of_objects(self, method: str) -> list[FunctionNode]:
        """Methods by that name of the classes of which there may be an object: somebody names the class or an
        heir, or an object calls itself. Whatever is called may be it."""
        methods = self.functions.get(method, [])
        if not methods or "self" in self.applied:
            return methods
        named = {name for _, own in self.own for name in own.mentions} & self.classes.keys()
        waiting = list(named)
        while waiting:
            bases = {last_name(base) for base in self.classes[waiting.pop()].bases} & self.classes.keys()
            waiting += bases - named
            named |= bases
        return [function for function in methods if getattr(self.owners.get(function), "name", "") in named]

    def _is_member(self, function: FunctionNode) -> bool:
        return function in self.owners or function in self.nested or function in self.foreign

    def _is_bare(self, function: FunctionNode) -> bool:
        return function not in self.owners or function.name in self._namesakes

    def beats_inside(self, node: ast.AST) -> bool:
        """Whether batches are fetched inside: by a call, or by a loop that goes over data."""
        known = self._beats.get(node)
        if known is not None:
            return known
        self._beats[node] = False
        facts = self.pieces.get(node) or Facts()
        found = (
            bool(facts.can & Can.FETCH)
            or any(
                self.beats_inside(loop) or self.owns_beat(loop) for loop in facts.loops if loop is not node
            )
            or any(self.beats_inside(function) for function in self._defined(facts))
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
        known = self._depths.get(loop)
        if known is None:
            known = self._depths[loop] = self._depth(loop, set())
        return known

    def _depth(self, node: ast.AST, seen: set[ast.AST]) -> int:
        if node in seen or not self.can(node) & (Can.BACKWARD | Can.FETCH):
            return 0
        seen.add(node)
        facts = self.pieces.get(node) or Facts()
        inner = [
            (not is_listed(loop)) + self._depth(loop, seen)
            for loop in facts.loops
            if loop is not node and (self.beats_inside(loop) or self.owns_beat(loop)) and not is_window(loop)
        ]
        called = [self._depth(function, seen) for function in self._defined(facts)]
        return max([0, *inner, *called])

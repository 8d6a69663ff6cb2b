"""One value for what two branches left, or two ways out of a function."""

from __future__ import annotations

import re

from gradclinic.facts import CutKind
from gradclinic.static.flow.values import (
    BUILT,
    MOST_ALTERNATIVES,
    NO_IDS,
    SOME_LAYER,
    Alike,
    Chain,
    CutAt,
    Either,
    Flow,
    Forms,
    Layer,
    Loss,
    Weights,
    as_tensor,
    carries,
    changed,
    made_of,
    shade_of,
    shared_ops,
)
from gradclinic.static.values import ClassDef, Const, Func, Instance, Lib, Map, Seq, Unknown, Value, same


def join(one: Value | None, other: Value | None, path: str) -> Value:
    """One value for what two branches left in a name."""
    if one is None or other is None:
        # Defined on one branch only: if it is used later, that branch was taken.
        return one or other or Unknown(path)
    if same(one, other):
        return one
    if isinstance(one, Flow) and isinstance(other, Flow):
        return _joined(one, other)
    if isinstance(one, Forms) or isinstance(other, Forms):
        return join_returned(one, other, path)
    module = _model_and_its_copy(one, other)
    if module is not None:
        return module
    if isinstance(one, Flow) or isinstance(other, Flow):
        flow, plain = (one, other) if isinstance(one, Flow) else (other, one)
        assert isinstance(flow, Flow)
        if flow.form == "number" and isinstance(plain, Const) and type(plain.value) in (int, float):
            return flow  # Either way a number, and one way it is what was lost.
        shade = shade_of([plain]) or Flow()
        return changed(
            flow, nodes=flow.nodes | shade.nodes, ops=(), grad=None, certain=False, cut=None, terms=(),
            paths=(), losses=NO_IDS, known=flow.known and not carries(plain), anew=flow.anew and shade.anew,
            batched=False, axes=None, padded=None, choices=(),
        )  # fmt: skip
    if isinstance(one, Seq) and isinstance(other, Seq) and len(one.items) == len(other.items):
        return Seq([join(a, b, path) for a, b in zip(one.items, other.items, strict=True)])
    if isinstance(one, Map) and isinstance(other, Map) and one.items.keys() == other.items.keys():
        return Map({key: join(value, other.items[key], path) for key, value in one.items.items()})
    if isinstance(one, Loss) and isinstance(other, Loss) and _are_alike(one, other):
        return one
    if _may_be_called(one) and _may_be_called(other):
        options = [*_options(one), *(o for o in _options(other) if o not in _options(one))]
        if len(options) <= MOST_ALTERNATIVES:
            return Either(options)
    if isinstance(one, Weights) and isinstance(other, Weights):
        return Weights(one.owners | other.owners)
    if _is_class_of_layers(one) and _is_class_of_layers(other):
        return Unknown(SOME_LAYER)
    unknown = made_of(path, one, other) if carries(one) or carries(other) else Unknown(path)
    built = [value for side in (one, other) for value in _built(side)]
    if built and len(built) <= MOST_ALTERNATIVES:
        unknown.attrs[BUILT] = Seq(built)
    return unknown


def join_returned(one: Value, other: Value, path: str) -> Value:
    """What a function gives on two ways out: a tensor or a tuple, or tuples of different lengths, say."""
    by_form: dict[int | None, Value] = {}
    for value in (*_forms(one), *_forms(other)):
        if not isinstance(value, (Flow, Seq)) or isinstance(value, Alike):
            return join(as_tensor(one), as_tensor(other), path)
        form = len(value.items) if isinstance(value, Seq) else None
        by_form[form] = join(by_form[form], value, path) if form in by_form else value
    forms = list(by_form.values())
    return Forms(forms) if len(forms) > 1 else forms[0]


def _forms(value: Value) -> list[Value]:
    return value.options if isinstance(value, Forms) else [value]


def _may_be_called(value: Value) -> bool:
    """Whether calling either of two tells something; which layer of torch a setting names, it alone says."""
    if isinstance(value, Lib):
        return not value.name.startswith(("torch", "builtins."))
    return isinstance(value, (Layer, Chain, Loss, Either, Instance, ClassDef, Func))


def _are_alike(one: Loss, other: Loss) -> bool:
    """`BCELoss().cuda()` where there is a device for it, and `BCELoss()` where there is none."""
    return (
        one.name == other.name
        and one.settings.keys() == other.settings.keys()
        and all(same(value, other.settings[name]) for name, value in one.settings.items())
    )


def _is_class_of_layers(value: Value) -> bool:
    if isinstance(value, Unknown):
        return value.path == SOME_LAYER
    return isinstance(value, Lib) and value.name.startswith("torch.nn.") and value.name.count(".") == 2


def _built(value: Value) -> list[Value]:
    if isinstance(value, (Chain, Instance)):
        return [value]
    held = value.attrs.get(BUILT) if isinstance(value, Unknown) else None
    return held.items if isinstance(held, Seq) else []


def _model_and_its_copy(one: Value, other: Value) -> Value | None:
    """The model, where one branch builds it and the other loads what a run before has saved of it."""
    for built, loaded in ((one, other), (other, one)):
        if isinstance(built, (Layer, Chain, Instance)):
            if isinstance(loaded, Unknown) and _LOADED.search(loaded.path):
                return built
            if isinstance(loaded, Flow) and loaded.grad is False and not loaded.ops:
                return built  # As a tensor is what `torch.load` gives taken.
    return None


_LOADED = re.compile(r"(^|[._])(load(_checkpoint|_model)?\(\)|(\w+_)?(checkpoint|ckpt)\b)", re.I)


def _options(value: Value) -> list[Value]:
    return value.options if isinstance(value, Either) else [value]


def _lost(flow: Flow, other: Flow) -> list[CutAt]:
    """Summands that lost their graph on this branch and on the other did so too, or are not there at all.

    Who detaches on one branch what trains on the other means to.
    """
    return [
        term
        for term in flow.terms
        if term in other.terms or (term.kind is CutKind.ITEM and not term.nodes <= other.nodes)
    ]


def _let_go(flow: Flow, other: Flow) -> bool:
    return flow.grad is False and flow.cut is not None and not flow.cut.nodes.isdisjoint(other.nodes)


def _joined(one: Flow, other: Flow) -> Flow:
    alike = one.nodes == other.nodes
    return Flow(
        ops=shared_ops([one, other]),
        nodes=one.nodes | other.nodes,
        owners=one.owners | other.owners,
        grad=one.grad if one.grad is other.grad else None,
        known=one.known and other.known,
        anew=one.anew and other.anew,
        certain=one.certain and other.certain and alike,
        spared=one.spared or other.spared or _let_go(one, other) or _let_go(other, one),
        cut=one.cut if one.cut and other.cut and one.cut.kind is other.cut.kind else None,
        terms=tuple(dict.fromkeys((*_lost(one, other), *_lost(other, one)))),
        paths=tuple(path for path in one.paths if path in other.paths),
        scalar=one.scalar and other.scalar,
        losses=one.losses | other.losses,
        divided=one.divided or other.divided,
        form=one.form if one.form == other.form else "tensor",
        axes=one.axes if one.axes == other.axes else None,
        batched=one.batched and other.batched,
        reshaped=one.reshaped or other.reshaped,
        padded=one.padded if one.padded == other.padded else None,
        choices=one.choices if one.choices == other.choices else (),
    )

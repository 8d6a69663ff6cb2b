"""Calls of torch's losses."""

from __future__ import annotations

from dataclasses import replace

from gradclinic.facts import CutKind, Location, LossCall, Op
from gradclinic.static import words
from gradclinic.static.flow.machine import Machine
from gradclinic.static.flow.tensors import derived
from gradclinic.static.flow.torch_names import SETTINGS_AT
from gradclinic.static.flow.values import CutAt, Flow, Loss, as_tensor, changed
from gradclinic.static.values import Const, Unknown, Value
from gradclinic.static.walk import Arguments

_KEEPS = words.Pattern(r"^(clamp|clip|interpolate|upsampl\w*|(adaptive_?)?avg_?pool\dd|mean)$")
"""Operations that make probabilities of probabilities."""


_SYMMETRIC = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_SQUASHED = ("softmax", "sigmoid")


def call_loss(machine: Machine, loss: Loss, args: Arguments, where: Location) -> Value:
    given, target = args.get(0, "input"), args.get(1, "target")
    if given is None or args.partial:
        return Unknown(f"{loss.name}()")
    if loss.name in _SYMMETRIC and _trains(target) and not _trains(given):
        assert target is not None
        given, target = target, given  # `mse_loss(y, model(x))` is as good as the other way around
    given = as_tensor(given)
    settings = {**loss.settings, **_by_position(loss.name, args), **args.keywords}
    reduction = _reduction(settings)
    # A target is data unless it is seen to carry a graph: what it is computed from does not matter.
    inputs = [given, *([target] if isinstance(target, Flow) and target.grad else [])]
    result = derived(machine, Op(loss.name, where), inputs)
    if isinstance(target, Flow) and target.grad is None:
        # If it does carry one, a backward goes through that as well.
        result = changed(result, nodes=result.nodes | target.nodes, certain=False)
    id = machine.new_id()
    if _is_lost(given, target) and isinstance(given, Flow) and given.cut is not None:
        result.cut = replace(given.cut, scalar=True, of_loss=True, sure=True, nodes=frozenset({id}))
    # Called in another file, which knows neither the loss nor what it is given: told where it was chosen.
    told = machine.home if machine.home == machine.asked else ""
    chosen = loss.where if loss.where and loss.where.path == told != where.path else where
    call = machine.log.losses[id] = LossCall(
        loss=loss.name,
        where=chosen,
        made_by=_trail(loss.name, given),
        reduction=reduction,
        trains=not machine.no_grad,
        ignore_index=_number(settings.get("ignore_index")),
        padding_value=_padding(loss.name, target, settings),
    )
    if isinstance(given, Flow) and not given.ops and given.choices and _serves_all(machine):
        for trail in given.choices:
            machine.log.chosen[chosen, trail[0]] = replace(
                call, made_by=_trail(loss.name, changed(given, ops=trail))
            )
    return changed(result, scalar=reduction in ("mean", "sum"), losses=frozenset({id}), padded=None)


def _trains(side: Value | None) -> bool:
    return isinstance(side, Flow) and side.grad is not False


def _is_lost(given: Value, target: Value | None) -> bool:
    """Whether what is compared with plain data was detached from its layers, and the whole loss with it."""
    detached, against = _detached(given), _detached(target)
    if detached is not None and against is not None:
        return True  # nobody detaches both sides but of something that would have trained
    if detached is None or not (detached.sure and detached.owners):
        return False
    return isinstance(target, Flow) and target.grad is False


def _detached(side: Value | None) -> CutAt | None:
    cut = side.cut if isinstance(side, Flow) and side.grad is False else None
    return cut if cut is not None and cut.kind is CutKind.DETACH else None


def _serves_all(machine: Machine) -> bool:
    """Whether it is called whichever model was chosen: what was asked for that may be asked again."""
    return not (machine.branch or machine.choosing or any(machine.narrowed))


def _trail(loss: str, given: Value) -> tuple[Op, ...]:
    if not isinstance(given, Flow) or not given.ops:
        return ()
    first, *rest = given.ops
    if loss != "binary_cross_entropy" and any(op.name in _SQUASHED for op in rest):
        # What was done to probabilities left them what they are; who clamps before a logarithm knows.
        behind = next(number for number, op in enumerate(given.ops) if not _KEEPS.match(op.name))
        if behind and given.ops[behind].name in _SQUASHED:
            return (replace(given.ops[behind], dim=None), *given.ops[behind + 1 :])
    # Which axis is which is known only as long as nothing was turned around since.
    if given.reshaped or not given.batched:
        first = replace(first, dim=None)
    return (first, *rest)


def _by_position(name: str, args: Arguments) -> dict[str, Value]:
    positions = SETTINGS_AT.get(name, ("input", "target"))
    return dict(list(zip(positions, args.positional, strict=False))[2:])


def _reduction(settings: dict[str, Value]) -> str | None:
    if "reduce" in settings or "size_average" in settings:
        return None
    chosen = settings.get("reduction")
    if chosen is None:
        return "mean"
    return str(chosen.value) if isinstance(chosen, Const) and isinstance(chosen.value, str) else None


def _number(value: Value | None) -> int | None:
    return value.value if isinstance(value, Const) and type(value.value) is int else None


def _padding(loss: str, target: Value | None, settings: dict[str, Value]) -> int | str | None:
    """The padding of the target that counts in the loss."""
    if loss not in SETTINGS_AT or not isinstance(target, Flow):
        return None
    if isinstance(target.padded, str):
        # Whatever number it is, nothing says that it is to be left out.
        return target.padded if settings.keys().isdisjoint({"weight", "ignore_index"}) else None
    if type(target.padded) is not int:
        return None
    ignored = settings.get("ignore_index", Const(-100))
    if "weight" in settings or not isinstance(ignored, Const) or ignored.value == target.padded:
        return None
    return target.padded

"""Which layers of a model that is called care for its mode, wherever its class stands."""

from __future__ import annotations

from gradclinic.facts import Event
from gradclinic.static.elsewhere import class_elsewhere, layers_spoken_of, some_layer_minds
from gradclinic.static.library_layers import PRETRAINED
from gradclinic.static.project_files import file_of


def minds(forward: Event) -> bool:
    """Whether anything in the model may behave differently in eval mode."""
    layers = layers_of(forward)
    if layers is not None:
        return bool(layers)
    return not forward.attrs.get("made") or some_layer_minds(forward.where.path)


def layers_of(forward: Event) -> tuple[str, ...] | None:
    """Those that care for the mode, wherever the class of the model stands; None when that is not known."""
    attrs = forward.attrs
    if "either" in attrs:
        found = [_awake(forward, _layers(*option)) for option in attrs["either"]]
        return found[0] if all(found) else None
    return _awake(forward, _layers(attrs.get("layers"), attrs.get("origin")))


def _awake(forward: Event, layers: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Without those of parts that were loaded in eval mode and that nobody has put into another."""
    if not layers or "set_at" in forward.attrs:
        return layers
    return tuple(layer for layer in layers if not layer.endswith(PRETRAINED))


def _layers(own: tuple[str, ...] | None, origin: tuple[str, str] | None) -> tuple[str, ...] | None:
    if origin is None or own is not None:
        return own
    seen = class_elsewhere(*origin)
    return seen.layers if seen is not None else None


def differentiates(forward: Event) -> bool:
    """Whether the model computes gradients itself: without them it could not be evaluated."""
    seen = class_elsewhere(*forward.attrs["origin"]) if "origin" in forward.attrs else None
    return seen is not None and seen.differentiates


def layers_around(forward: Event) -> tuple[str, ...]:
    """Of a model that is given, or made by a function of the project: the first layer that cares among those
    the project speaks of there."""
    attrs = forward.attrs
    if "layers" in attrs:
        return ()
    if "origin" not in attrs:
        return () if attrs.get("made") else layers_spoken_of(forward.where.path, beside=True)
    name, path = attrs["origin"]
    module = name.rpartition(".")[0]
    file = file_of(module, path) if module.strip(".") and class_elsewhere(name, path) is None else None
    return layers_spoken_of(file) if file is not None else ()

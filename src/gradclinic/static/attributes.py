"""`x.name` for every kind of x."""

from __future__ import annotations

from dataclasses import replace

from gradclinic.facts import ActorKind
from gradclinic.static import words
from gradclinic.static.roles import actor, infer, role_of
from gradclinic.static.values import (
    Accelerator,
    ActorRef,
    Bound,
    ClassDef,
    Const,
    Func,
    Grad,
    Instance,
    Lib,
    Map,
    Model,
    Num,
    Params,
    Seq,
    Stream,
    Tensor,
    Unknown,
    Value,
    library,
)  # fmt: skip
from gradclinic.static.walk import Arguments, Walk

_ACTOR_METHODS = words.names(
    "step zero_grad scale unscale_ update get_scale state_dict load_state_dict get_last_lr"
)
_SAME_MODEL = frozenset({"module", "_orig_mod", "model_engine"})
_SIZES = words.names(
    "in_features out_features in_channels out_channels num_features num_channels num_classes n_embd config "
    "hidden_size hidden_dim embed_dim embedding_dim num_embeddings input_size output_size vocab_size d_model"
)
"""What a new part of a model is made by, and that is no part itself."""
_OF_ANY_OBJECT = frozenset({"__class__", "__dict__", "__doc__", "__module__"})
"""What Python keeps of a model as of anything else: no part of it that could be called or trained."""


def get_attribute(walk: Walk, base: Value, attr: str) -> Value:
    if isinstance(base, Unknown):
        known = base.attrs.get(attr)
        if known is None:
            known = base.attrs[attr] = infer(walk, attr, f"{base.path}.{attr}")
            if isinstance(known, Unknown):
                known.holds = base.holds
        return known
    if isinstance(base, Lib):
        return library(f"{base.name}.{attr}")
    if isinstance(base, Instance):
        return _of_instance(walk, base, attr)
    if isinstance(base, ClassDef):
        return base.find(attr) or Unknown(f"{base.qualname}.{attr}")
    if isinstance(base, Model):
        return _of_model(walk, base, attr)
    if isinstance(base, ActorRef):
        return _of_actor(walk, base, attr)
    if isinstance(base, Tensor):
        if attr == "grad":
            return Grad(Params(None))
        if attr == "backward":
            return Bound(base, attr)
        if attr in ("item", "tolist", "numpy"):  # handed on, not called
            return Unknown(f"<tensor>.{attr}")
        return Tensor() if attr == "data" else base
    if isinstance(base, Params):
        return (
            Grad(base)
            if attr in ("grad", "_grad")
            else base
            if attr == "data"
            else Unknown(f"<param>.{attr}")
        )
    if isinstance(base, Grad):
        return base
    if isinstance(base, Accelerator) and attr == "sync_gradients":
        return Const(walk.synced)
    if isinstance(base, Accelerator) and attr == "gradient_accumulation_steps":
        return base.window or walk.invented(walk.window, "accumulation")
    if isinstance(base, Stream) and attr not in ("append", "items", "values"):
        return infer(walk, attr, f"{base.path}.{attr}")
    if isinstance(base, (Seq, Map, Stream, Accelerator, Num, Const, Func)):
        return Bound(base, attr)
    return Unknown(f"<{type(base).__name__}>.{attr}")


def _of_instance(walk: Walk, base: Instance, attr: str) -> Value:
    found = base.attrs.get(attr)
    if found is not None:
        return found
    found = base.cls.find(attr)
    if isinstance(found, Func):
        if any(name.endswith("staticmethod") for name in found.decorators):
            return found
        return _computed(walk, base, attr, found.of(base)) if _is_property(found) else found.of(base)
    if found is not None:
        return found
    if base.model is not None and attr in words.MODULE_METHODS:
        return Bound(base.model, attr)
    value = base.attrs[attr] = infer(walk, attr, f"{base.name}.{attr}")
    return value


def _is_property(func: Func) -> bool:
    return any(name.endswith("property") for name in func.decorators)


def _computed(walk: Walk, base: Instance, attr: str, getter: Func) -> Value:
    """What a property gives; one that tells nothing is known by its name."""
    value = walk.call(walk, getter, Arguments(), getter.node)
    return value if not isinstance(value, (Unknown, Const)) else infer(walk, attr, f"{base.name}.{attr}")


def _of_model(walk: Walk, base: Model, attr: str) -> Value:
    if attr in _SAME_MODEL:
        return base.inside() if attr == "module" and base.inner is not None else base
    if attr in base.attrs:
        return base.attrs[attr]
    if attr in words.MODULE_METHODS:
        return Bound(base, attr)
    if attr in _OF_ANY_OBJECT:
        return Unknown(f"{base.name}.{attr}")
    if attr == "training" and base.mode.set_at is not None and not walk.survey.sets_modes_by_hand:
        known = base.mode.training
        return Const(known) if known is not None else Unknown(f"{base.name}.{attr}")
    if role_of(walk.survey, attr) == "optimizer" and "step" in walk.survey.methods_of.get(attr, ()):
        own = base.attrs[attr] = actor(walk, ActorKind.OPTIMIZER, f"{base.name}.{attr}")
        walk.recorder.extend(own.id, base.keys)
        return own
    if attr in _SIZES:
        return Unknown(f"{base.name}.{attr}")
    keys = frozenset(f"{key}.{attr}" for key in base.keys)
    part = base.attrs[attr] = Model(keys, f"{base.name}.{attr}", mode=replace(base.mode))
    return part


def _of_actor(walk: Walk, base: ActorRef, attr: str) -> Value:
    if attr in _ACTOR_METHODS:
        return Bound(base, attr)
    if base.kind is ActorKind.OPTIMIZER and attr in ("param_groups", "state"):
        return Params(optimizers=frozenset({base.id}))
    if attr in ("optimizer", "scheduler"):
        return base
    return infer(walk, attr, f"{base.id}.{attr}") if not base.built else Unknown(f"{base.id}.{attr}")

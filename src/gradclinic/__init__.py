"""gradclinic tells a PyTorch user why a training run does not learn, blows up, or changes when compiled."""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_LAZY = {
    "Case": "gradclinic.case",
    "Clip": "gradclinic.train",
    "Noise": "gradclinic.train",
    "TrainStep": "gradclinic.train",
    "Training": "gradclinic.probes._training",
    "checkpoint_activations": "gradclinic.train",
    "load_case": "gradclinic.target",
    "load_ipython_extension": "gradclinic.notebook",
    "parameter_groups": "gradclinic.train",
    "probe_compile": "gradclinic.probes.compile",
    "probe_flow": "gradclinic.probes.flow",
    "probe_lr": "gradclinic.probes.lr",
    "share_compiled": "gradclinic.compile.share",
    "verified_compile": "gradclinic.compile.verified",
    "watch": "gradclinic.watching",
}
"""Public names and where they live: imported on first use, so that `import gradclinic` stays cheap."""


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])

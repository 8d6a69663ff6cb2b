"""What is watched, one file each. Every module here has `install(scene)`."""

from gradclinic.runtime.observers import (
    backward,
    checkpoints,
    clipping,
    closeup,
    crashes,
    data,
    evaluation,
    losses,
    modules,
    optimizers,
    parameters,
    saving,
    scaling,
    schedules,
    statistics,
)

ALL = (
    optimizers,
    backward,
    clipping,
    scaling,
    schedules,
    losses,
    modules,
    data,
    saving,
    statistics,
    parameters,
    closeup,
    crashes,
    evaluation,
    checkpoints,
)

__all__ = ["ALL"]

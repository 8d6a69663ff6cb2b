"""What is watched, one file each. Every module here has `install(scene)`."""

from gradclinic.runtime.observers import (
    backward,
    checkpoints,
    clipping,
    closeup,
    crashes,
    data,
    evaluation,
    graphs,
    losses,
    modules,
    optimizers,
    parameters,
    plain_state,
    replicas,
    samplers,
    saving,
    scaling,
    schedules,
    statistics,
    terms,
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
    graphs,
    replicas,
    samplers,
    plain_state,
    terms,
)

__all__ = ["ALL"]

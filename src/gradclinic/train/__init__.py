"""A training step that cannot be mis-ordered; the user keeps the loop."""

from gradclinic.train.activations import checkpoint_activations
from gradclinic.train.clip import Clip
from gradclinic.train.ema import EMA
from gradclinic.train.errors import CheckpointError, NonFiniteError, RanksDivergedError, TrainStepError
from gradclinic.train.groups import parameter_groups
from gradclinic.train.noise import Noise
from gradclinic.train.step import TrainStep
from gradclinic.train.update import Update

__all__ = [
    "EMA",
    "CheckpointError",
    "Clip",
    "Noise",
    "NonFiniteError",
    "RanksDivergedError",
    "TrainStep",
    "TrainStepError",
    "Update",
    "checkpoint_activations",
    "parameter_groups",
]

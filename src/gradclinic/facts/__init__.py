"""What a source saw, frozen and free of torch: the only thing a rule may read."""

from gradclinic.facts.census import Census, Group, Holder, Parameter, RunningNorm
from gradclinic.facts.checkpoints import Load, Saves
from gradclinic.facts.crash import Crash, CrashKind
from gradclinic.facts.cut import Cut, CutKind, CutRole
from gradclinic.facts.graphs import (
    AnomalyMode,
    BareCheckpoint,
    DataWrite,
    KeptGraphs,
    RetainedGraph,
    UncheckedGradient,
)
from gradclinic.facts.location import Location
from gradclinic.facts.loss import DomainEdge, LossCall, Op, SoftmaxUse
from gradclinic.facts.modes import Evaluation, ModeOfTraining
from gradclinic.facts.observation import Observation
from gradclinic.facts.ranks import DISTRIBUTED, Look, Replica, Replicas, ShardedShuffle
from gradclinic.facts.source import Source
from gradclinic.facts.tape import Actor, ActorKind, Event, EventKind, Tape
from gradclinic.facts.updates import (
    ACCUMULATION,
    BROUGHT,
    Update,
    accumulated,
    cadence,
    features,
    serves_another,
    surely,
    tail,
    updates,
)

__all__ = [
    "ACCUMULATION",
    "BROUGHT",
    "DISTRIBUTED",
    "Actor",
    "ActorKind",
    "AnomalyMode",
    "BareCheckpoint",
    "Census",
    "Crash",
    "CrashKind",
    "Cut",
    "CutKind",
    "CutRole",
    "DataWrite",
    "DomainEdge",
    "Evaluation",
    "Event",
    "EventKind",
    "Group",
    "Holder",
    "KeptGraphs",
    "Load",
    "Location",
    "Look",
    "LossCall",
    "ModeOfTraining",
    "Observation",
    "Op",
    "Parameter",
    "Replica",
    "Replicas",
    "RetainedGraph",
    "RunningNorm",
    "Saves",
    "ShardedShuffle",
    "SoftmaxUse",
    "Source",
    "Tape",
    "UncheckedGradient",
    "Update",
    "accumulated",
    "cadence",
    "features",
    "serves_another",
    "surely",
    "tail",
    "updates",
]

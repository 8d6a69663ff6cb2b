"""What a source saw, frozen and free of torch: the only thing a rule may read."""

from gradclinic.facts.census import Census, Group, Holder, Parameter, RunningNorm
from gradclinic.facts.location import Location
from gradclinic.facts.loss import LossCall, Op
from gradclinic.facts.observation import Observation
from gradclinic.facts.source import Source
from gradclinic.facts.tape import Actor, ActorKind, Event, EventKind, Tape
from gradclinic.facts.updates import ACCUMULATION, Update, cadence, features, surely, tail, updates

__all__ = [
    "ACCUMULATION",
    "Actor",
    "ActorKind",
    "Census",
    "Event",
    "EventKind",
    "Group",
    "Holder",
    "Location",
    "LossCall",
    "Observation",
    "Op",
    "Parameter",
    "RunningNorm",
    "Source",
    "Tape",
    "Update",
    "cadence",
    "features",
    "surely",
    "tail",
    "updates",
]

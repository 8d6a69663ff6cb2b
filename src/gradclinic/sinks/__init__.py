"""Loggers that people look at already: each gets the same numbers and alerts under the same names."""

from gradclinic.sinks._choice import KNOWN, open_sink, sinks_of
from gradclinic.sinks._logbook import Logbook
from gradclinic.sinks._sink import PREFIX, Sink

__all__ = ["KNOWN", "PREFIX", "Logbook", "Sink", "open_sink", "sinks_of"]

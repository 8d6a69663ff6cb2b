"""Source text, executed on abstract values, becomes the same tape a running program would leave."""

from gradclinic.static.imports import Find
from gradclinic.static.observe import observe_loops_with, observe_source
from gradclinic.static.values import Module

__all__ = ["Find", "Module", "observe_loops_with", "observe_source"]

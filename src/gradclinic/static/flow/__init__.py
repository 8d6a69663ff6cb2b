"""Where values come from and where they go: from a layer to a loss, from a loss to backward.

A file is executed once on abstract tensors, all branches joined and every loop gone around twice. The walk
beside it asks in which order things happen, along each path; this one asks what was computed from what.
"""

from gradclinic.static.flow.endings import ending_cases
from gradclinic.static.flow.observe import flow_cases

__all__ = ["ending_cases", "flow_cases"]

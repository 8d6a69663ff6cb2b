"""Source text, executed on abstract values, becomes the same tape a running program would leave."""

from gradclinic.static.observe import observe_source

__all__ = ["observe_source"]

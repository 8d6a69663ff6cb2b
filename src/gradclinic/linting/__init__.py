"""From paths to a diagnosis of the source found there."""

from gradclinic.linting.project import lint

__all__ = ["lint"]

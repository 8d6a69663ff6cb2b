"""From paths to a diagnosis of the source found there, and to the source with its fixes.

Baselines and fixes are modules of their own, for few runs ask for them.
"""

from gradclinic.linting.files import STDIN
from gradclinic.linting.project import lint, with_topics

__all__ = ["STDIN", "lint", "with_topics"]

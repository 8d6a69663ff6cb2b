"""From paths to a diagnosis of the source found there, and to the source with its fixes."""

from gradclinic.linting.baseline import read_baseline, write_baseline
from gradclinic.linting.files import STDIN
from gradclinic.linting.fixed_files import FixedFile, fix_files
from gradclinic.linting.fixing import fixable
from gradclinic.linting.project import lint

__all__ = ["STDIN", "FixedFile", "fix_files", "fixable", "lint", "read_baseline", "write_baseline"]

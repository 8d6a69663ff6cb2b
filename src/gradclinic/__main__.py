"""`python -m gradclinic`, which is also what torchrun launches."""

import sys

from gradclinic.cli import main

if __name__ == "__main__":
    sys.exit(main())

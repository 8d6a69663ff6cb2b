"""The other half of a resume experiment: a fresh process that loads a checkpoint and trains on."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

from gradclinic.case import Case
from gradclinic.errors import UsageError
from gradclinic.probes._training import Training
from gradclinic.probes.resume import carry_on
from gradclinic.target import load_target

CANNOT_IMPORT = 3


def main(target: str, checkpoint: str, ended: str, steps: str) -> int:
    # The user's own prints must not reach the one line that is read.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            made: Case | Training = load_target(target, (Case, Training))
        except UsageError as error:
            print(error, file=sys.stderr)
            return CANNOT_IMPORT
        training = Training.of(made) if isinstance(made, Case) else made
        seen = carry_on(training, Path(checkpoint), int(steps), Path(ended))
    print(json.dumps(seen))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Training steps of the force field, eager beside verified_compile on inductor.

    python benchmarks/force_field.py [--atoms 64] [--width 64] [--steps 30]

A step is energy, force and virial loss and their backward. Eager and compiled steps take turns, and
medians of CPU time are shown, so that other work on the machine touches both alike.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "potential"))
from cases import energy, force, virial
from gradclinic import verified_compile
from model import Descriptor, Fitting, Potential, fold
from periodic import make_frame


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--atoms", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    frame = make_frame(args.atoms, 2, 3.0, box=8.0, neighbours=40)
    descriptor = Descriptor(2, args.width, 8, 3.0)
    model = Potential(descriptor, Fitting(args.width * 8, 2, 2 * args.width, torch.eye(3)[0])).double()
    coord = frame.coord.clone().requires_grad_(True)
    started = time.process_time()
    fast = verified_compile(model.lower, (coord, frame.types, frame.neighbours))
    compiling = time.process_time() - started

    def step(lower) -> float:
        begin = time.process_time()
        model.zero_grad(set_to_none=True)
        outputs = fold(lower(coord, frame.types, frame.neighbours), frame)
        (0.1 * energy(outputs, frame) + force(outputs, frame) + 0.1 * virial(outputs, frame)).backward()
        return time.process_time() - begin

    for lower in (model.lower, fast):
        step(lower)
    times = {"eager": [], "compiled": []}
    for _ in range(args.steps):
        times["eager"].append(step(model.lower))
        times["compiled"].append(step(fast))
    medians = {name: 1e3 * median(values) for name, values in times.items()}
    print(f"{args.atoms} atoms, width {args.width}, float64, one thread, {args.steps} steps each, medians")
    for name, value in medians.items():
        print(f"{name:<10} {value:>8.2f} ms")
    print(f"eager / compiled {medians['eager'] / medians['compiled']:.2f}")
    print(f"largest difference from eager {fast.proofs[0].worst():.1e}, made and proven in {compiling:.0f} s")


if __name__ == "__main__":
    main()

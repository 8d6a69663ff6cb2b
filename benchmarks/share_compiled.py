"""What sharing a compiled graph saves: the potential for N tasks, shared, beside one task and beside N apart.

    python benchmarks/share_compiled.py [--tasks 8] [--apart]

Each arrangement runs in a process of its own with every compile cache off. CPU time counts the
compilers that inductor starts. Every task is compared with its own eager model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def worker(tasks: int, shared: bool) -> None:
    import resource

    import torch

    sys.path.insert(0, str(HERE.parent / "examples" / "potential"))
    from cases import ATOMS, CUTOFF, TYPES, make_tasks
    from gradclinic import share_compiled, verified_compile
    from periodic import make_frame

    frame = make_frame(ATOMS, TYPES, CUTOFF)
    example = (frame.coord.clone().requires_grad_(True), frame.types, frame.neighbours)
    names = [f"task {number}" for number in range(tasks)]
    models = {}
    for number, name in enumerate(names):
        models[name] = next(iter(make_tasks().values()))
        models[name].fitting.bias += number
        models[name].descriptor.std += 0.1 * number
    before = _cpu(resource), _peak(resource)
    if shared:
        functions = share_compiled({name: model.lower for name, model in models.items()}, example)
        groups = len(functions.groups)
    else:
        functions = {}
        for name, model in models.items():
            functions[name] = verified_compile(model.lower, example)
            torch._dynamo.reset()
        groups = len(functions)
    after = _cpu(resource), _peak(resource)
    worst = max(function.proofs[0].worst() for function in functions.values())
    print(json.dumps({"cpu_s": after[0] - before[0], "peak_mb": after[1], "groups": groups, "worst": worst}))


def _cpu(resource) -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def _peak(resource) -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(tasks: int, shared: bool) -> dict[str, float]:
    words = [sys.executable, __file__, "--worker", "--tasks", str(tasks), *([] if shared else ["--apart"])]
    env = os.environ | {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--apart", action="store_true", help="also compile every task by itself")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.tasks, not args.apart)
        return
    rows = {"1 task": measure(1, True), f"{args.tasks} shared": measure(args.tasks, True)}
    if args.apart:
        rows[f"{args.tasks} apart"] = measure(args.tasks, False)
    one = rows["1 task"]
    print(
        f"{'':<10} {'cpu s':>8} {'of one':>7} {'peak MB':>8} {'of one':>7} {'graphs':>7} {'worst error':>12}"
    )
    for name, row in rows.items():
        print(
            f"{name:<10} {row['cpu_s']:>8.1f} {row['cpu_s'] / one['cpu_s']:>7.2f} {row['peak_mb']:>8.0f} "
            f"{row['peak_mb'] / one['peak_mb']:>7.2f} {row['groups']:>7} {row['worst']:>12.1e}"
        )


if __name__ == "__main__":
    main()

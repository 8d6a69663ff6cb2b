"""The seal of a checkpoint: size and SHA-256 of every file, written last."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

SEAL = "seal.json"


def checksums(directory: Path, rank: int, ranks: int) -> dict[str, list[Any]]:
    """Of the files this rank wrote; those of no rank are taken by the first."""
    others = tuple(f"__{number}_" for number in range(ranks) if number != rank)
    return {
        path.name: [path.stat().st_size, _file_digest(path)]
        for path in sorted(directory.iterdir())
        if path.is_file()
        and (path.name.startswith(f"__{rank}_") or (rank == 0 and not path.name.startswith(others)))
    }


def close(directory: Path, sums: dict[str, list[Any]], ranks: int) -> None:
    content = json.dumps({"ranks": ranks, "files": sums})
    with (directory / SEAL).open("w") as file:
        json.dump({"content": content, "digest": _digest(content.encode())}, file)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(directory)


def sync_directory(directory: Path) -> None:
    """Names reach the disk with their directory, not with their file."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fault_of(directory: Path) -> str:
    """What is wrong with a checkpoint; empty when it is as it was written."""
    try:
        sealed = _content(directory)["files"]
    except FileNotFoundError:
        return f"{SEAL} is missing: it was not written to the end" if directory.is_dir() else "does not exist"
    except (ValueError, KeyError, TypeError):
        return f"{SEAL} was altered after it was written"
    for name, (size, digest) in sealed.items():
        path = directory / name
        if not path.is_file():
            return f"{name} is missing"
        if (found := path.stat().st_size) != size:
            return f"{name} has {found} bytes of {size}"
        if _file_digest(path) != digest:
            return f"{name} was altered after it was written"
    return ""


def ranks_of(directory: Path) -> int:
    return int(_content(directory)["ranks"])


def _content(directory: Path) -> dict[str, Any]:
    seal = json.loads((directory / SEAL).read_text())
    if _digest(seal["content"].encode()) != seal["digest"]:
        raise ValueError
    content: dict[str, Any] = json.loads(seal["content"])
    return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""The error a script ends with: which line raised it, wrote, needed."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

import torch

from gradclinic.facts import EventKind, Location
from gradclinic.facts.crash import Crash, CrashKind
from gradclinic.runtime import graph
from gradclinic.runtime.scene import Scene

_SIGNS = (
    (CrashKind.INPLACE, "modified by an inplace operation"),
    (CrashKind.SECOND_BACKWARD, "backward through the graph a second time"),
    (CrashKind.TARGET, "is out of bounds"),
    (CrashKind.TARGET, "multi-target not supported"),
    (CrashKind.TARGET, "to match target batch_size"),
    (CrashKind.TARGET, "expected scalar type Long but found"),
    (CrashKind.TARGET, '"nll_loss_forward_reduce_cuda_kernel'),
    (CrashKind.LOAD, "Error(s) in loading state_dict"),
    (CrashKind.INFERENCE, "Inference tensors cannot be saved for backward"),
    (CrashKind.INFERENCE, "Inplace update to inference tensor outside InferenceMode"),
)
_SHAPE = re.compile(r"\[torch\.\S+ \[([\d, ]*)\]\]")
_SIZE_MISMATCH = re.compile(
    r"size mismatch for (\S+): (copying a param with shape .*? in current model is .*?\.)"
)
_TARGET = re.compile(r"Target (-?\d+) is out of bounds")


def install(scene: Scene) -> None:
    found: list[object] = []

    def ended(error: BaseException) -> None:
        message = str(error)
        kind = next((kind for kind, sign in _SIGNS if sign in message), None)
        where = _users_line(scene, error.__traceback__)
        if kind is None or where is None:
            return
        if kind is CrashKind.INPLACE and _carried_on(scene, error, where):
            found.append(Crash(CrashKind.SECOND_BACKWARD, _first_line(message), where, spans_steps=True))
        elif kind is CrashKind.INPLACE:
            found.append(_inplace(scene, error, message, where))
        elif kind is CrashKind.SECOND_BACKWARD:
            found.append(Crash(kind, _first_line(message), where, spans_steps=scene.recorder.steps > 0))
        elif kind is CrashKind.LOAD:
            names = tuple(f"{key}: {what}" for key, what in _SIZE_MISMATCH.findall(message))
            found.append(Crash(kind, _first_line(message), where, names=names))
        else:
            found.append(Crash(kind, _first_line(message), where, names=tuple(_TARGET.findall(message))))

    scene.endings.append(ended)
    scene.facts.append(lambda: found)


def _inplace(scene: Scene, error: BaseException, message: str, where: Location) -> Crash:
    match = _SHAPE.search(message)
    shape = tuple(int(n) for n in match[1].split(",") if n.strip()) if match else ()
    wrote: tuple[Location, str] | None = None
    for line, name, of in reversed(scene.writes):
        if of == shape or name == "__setitem__":
            wrote = (line, name)
            break
    stepped = scene.recorder.latest(EventKind.STEP)
    if stepped is not None and (wrote is None or wrote[0] == stepped.where):
        wrote = (stepped.where, "step")
    needed = _needed(scene, error.__traceback__)
    return Crash(CrashKind.INPLACE, _first_line(message), where, wrote, needed)


def _carried_on(scene: Scene, error: BaseException, where: Location) -> bool:
    """The backward on this line was told to keep its graph, and the next one there runs into it."""
    root = _backward_root(error.__traceback__)
    if root is None or where not in scene.retained:
        return False
    own = graph.operations([root])
    return any(earlier != own and earlier & own for earlier in scene.retained[where])


def _needed(scene: Scene, trace: TracebackType | None) -> Location | None:
    """The line of the first node below the root whose saved value is gone."""
    root = _backward_root(trace)
    todo: list[Any] = [root.grad_fn] if root is not None and root.grad_fn is not None else []
    seen: set[Any] = set(todo)
    while todo and len(seen) < graph.MOST_NODES:
        node = todo.pop(0)
        if _saved_is_gone(node):
            return scene.lines.get(graph.key_of(node))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                todo.append(following)
    return None


def _saved_is_gone(node: Any) -> bool:
    for attribute in dir(node):
        if attribute.startswith("_saved_"):
            try:
                getattr(node, attribute)
            except RuntimeError as error:
                return "inplace operation" in str(error)
    return False


def _backward_root(trace: TracebackType | None) -> torch.Tensor | None:
    """The tensor whose backward failed, from the frames of torch's own backward."""
    root = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_name == "backward" and code.co_filename.endswith(("_tensor.py", "autograd/__init__.py")):
            given = trace.tb_frame.f_locals
            root = given.get("self", given.get("tensors", root))
        trace = trace.tb_next
    if isinstance(root, tuple | list):
        root = root[0] if root else None
    return root if isinstance(root, torch.Tensor) else None


def _users_line(scene: Scene, trace: TracebackType | None) -> Location | None:
    line = None
    while trace is not None:
        if scene.recorder.places.is_users(trace.tb_frame.f_code.co_filename):
            line = scene.recorder.places.at(trace.tb_frame, trace.tb_lineno)
        trace = trace.tb_next
    return line


def _first_line(message: str) -> str:
    return message.strip().splitlines()[0]

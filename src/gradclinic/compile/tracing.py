"""A function and its autograd calls as one graph of operations that can be differentiated again.

`make_fx` records what runs below autograd. Two things get lost there. A tensor that autograd saved
in the forward comes back in the backward as `detach(detach(x))`: replayed, it is a constant, and a
second derivative through it is silently missing. And where the user stopped a gradient with
`no_grad`, or took one without `create_graph`, nothing is recorded: replayed, the gradient flows on.
Both are put right here, the user's own `detach()` stays where it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.fx.experimental import _config as symbolic_config
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot, make_fx
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

DETACH = torch.ops.aten.detach.default
LINE = "user's line"
"""The key in a node's meta for the path, line and function that made it."""
_FOREIGN = (str(Path(torch.__file__).resolve().parent), str(Path(__file__).resolve().parent.parent), "<")


def trace(function: Callable[..., Any], inputs: Sequence[Tensor], *, symbolic: bool = False) -> GraphModule:
    """The graph of `function(*inputs)`, with gradients as eager has them."""
    saved = SavedTensors()

    def watched(*args: Any) -> Any:
        with StopsStay(), saved:
            return function(*args)

    # Sizes that happen to be equal in the example are not one size.
    with symbolic_config.patch(use_duck_shape=False):  # type: ignore[attr-defined]
        graph = make_fx(
            watched,
            tracing_mode="symbolic" if symbolic else "real",
            _allow_non_fake_inputs=symbolic,
        )(*inputs)
    graph.meta["saved tensors reconnected"] = reconnect(graph, saved.nodes())
    return graph


class SavedTensors(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Finds the `detach` nodes that autograd made by itself, as opposed to the user's.

    Autograd detaches a result when it saves it, and again when it takes it back; the second time
    it gives the tensor its history back, which no `detach()` of the user's ever has. Each node is
    marked with the user's line as well: torch itself would keep the lines of `forward` only.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._detached: list[tuple[Tensor, Node]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        first = out if isinstance(out, Tensor) else next(iter(pytree.tree_leaves(out)), None)
        node = _node_of(first) if isinstance(first, Tensor) else None
        if node is not None:
            node.meta.setdefault(LINE, _users_line())
            if func is DETACH and isinstance(first, Tensor):
                self._detached.append((first, node))
        return out

    def nodes(self) -> list[Node]:
        """Once the trace is done: the nodes of tensors taken back, and of those saved for them."""
        back = {node for tensor, node in self._detached if tensor.requires_grad}
        nodes = [node for _, node in self._detached]
        self._detached.clear()
        return [node for node in nodes if node in back or (node.users and set(node.users) <= back)]


class StopsStay(TorchFunctionMode):
    """Writes a `detach` into the trace where the user stops a gradient without one."""

    def __init__(self) -> None:
        super().__init__()
        self._stopped = not torch.is_grad_enabled()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func is torch._C._set_grad_enabled:
            self._stopped = not args[0]
        elif self._stopped or func is torch.autograd.grad:
            return pytree.tree_map_only(Tensor, _pinned, out)
        return out


def _pinned(tensor: Tensor) -> Tensor:
    constant = tensor.is_floating_point() and not tensor.requires_grad and _node_of(tensor) is not None
    return tensor.detach() if constant else tensor


def _node_of(tensor: Tensor) -> Node | None:
    mode = get_proxy_mode()
    slot = get_proxy_slot(tensor, mode.tracer, None) if mode is not None else None
    return None if slot is None else slot.proxy.node


def _users_line() -> tuple[str, int, str] | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_FOREIGN):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def reconnect(graph: GraphModule, saved: Sequence[Node]) -> int:
    """Let these detach nodes pass the gradient on, by leaving them out."""
    for node in saved:
        node.replace_all_uses_with(node.all_input_nodes[0])
        graph.graph.erase_node(node)
    graph.recompile()
    return len(saved)


@contextmanager
def no_donated_buffers() -> Iterator[None]:
    """Compiled backwards may be run once per loss term: they must not reuse what they read."""
    from torch._functorch import config

    with config.patch(donated_buffer=False):
        yield

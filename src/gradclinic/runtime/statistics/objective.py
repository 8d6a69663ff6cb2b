"""Which way the objective goes: a loss that cannot be negative, as it is or turned round."""

from __future__ import annotations

from typing import Any

from gradclinic.runtime.statistics.numerics import operation, saved

Node = Any
_NEVER_NEGATIVE = (
    "nll_loss",
    "nll_loss2_d",
    "mse_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "abs",
)
_HANDS_ON = ("mean", "sum", "to_copy", "view", "reshape_alias", "squeeze", "alias", "clone", "div", "mul")


def sense(node: Node | None, depth: int = 12) -> int:
    """1 for a loss that is at least 0, -1 for the negative of one, 0 if unknown."""
    sign = 1
    for _ in range(depth):
        if node is None:
            return 0
        kind = operation(node)
        if kind in _NEVER_NEGATIVE or (kind == "pow" and getattr(node, "_saved_exponent", None) == 2):
            return sign
        if kind in ("neg", "rsub") or (kind == "sub" and node.next_functions[0][0] is None):
            sign = -sign
        elif kind in ("div", "mul"):
            factor = saved(node, "other")
            if factor is not None and factor.numel() == 1:
                sign = sign if float(factor) > 0 else -sign
        elif kind not in _HANDS_ON:
            return 0
        following = [one for one, _ in node.next_functions if one is not None]
        if len(following) != 1:
            return 0
        node = following[0]
    return 0

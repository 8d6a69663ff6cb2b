"""Names of many parameters in a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradclinic.facts import Parameter


def listed(names: Iterable[str], *, most: int = 4) -> str:
    """`a, b, c and 7 more`"""
    unique = list(dict.fromkeys(names))
    shown = ", ".join(unique[:most])
    return shown if len(unique) <= most else f"{shown} and {len(unique) - most} more"


def modules_of(parameters: Sequence[Parameter]) -> list[str]:
    """The modules that own these, in order: `model.head` for `model.head.weight` and `.bias`."""
    return list(
        dict.fromkeys(parameter.name.rpartition(".")[0] or parameter.name for parameter in parameters)
    )


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

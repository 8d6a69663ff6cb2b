"""A rule's page: what `explain` prints, the docs hold and code scanners show."""

from __future__ import annotations

from importlib import import_module

from gradclinic.facts.source import Source
from gradclinic.rules._rule import Rule

FOUND_BY = {Source.STATIC: "lint", Source.RUNTIME: "run", Source.PROBE: "probe"}


def page(rule: Rule) -> str:
    """The whole page in markdown, made from nothing but the rule's own file."""
    kind = "" if rule.kind == "cause" else f" ({rule.kind})"
    examples = "\n\n".join(
        f"## {_title(name)}\n\n```python\n{code.rstrip()}\n```"
        for name, code in {**rule.bad, **rule.good}.items()
    )
    return (
        f"# {rule.code} {rule.name}\n\n"
        f"{rule.severity}{kind} · found by {found_by(rule)} · since {rule.since}\n\n"
        f"{rule.doc}\n\n{examples}\n"
    )


def found_by(rule: Rule) -> str:
    """`lint, run`: the commands that can raise it."""
    return ", ".join(FOUND_BY[source] for source in Source if source in rule.sources)


def family(rule: Rule) -> str:
    """`1xx: the order of the loop`, as the package that holds the rule calls itself."""
    package = import_module(rule.module.rpartition(".")[0])
    return (package.__doc__ or "").partition("\n")[0].rstrip(".")


def _title(name: str) -> str:
    """`Bad`, and `Bad: two optimizers` for BAD_TWO_OPTIMIZERS."""
    word, _, variant = name.partition("_")
    return word.capitalize() + (f": {variant.replace('_', ' ')}" if variant else "")

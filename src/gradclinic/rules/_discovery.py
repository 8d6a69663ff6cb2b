"""Rules are found by walking this package, so adding one touches one file."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from types import ModuleType

from gradclinic.errors import UsageError
from gradclinic.rules._rule import Rule


class UnknownRule(UsageError):
    pass


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in order of code."""
    import gradclinic.rules as package

    rules: dict[str, Rule] = {}
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if info.ispkg or info.name.rpartition(".")[2].startswith("_"):
            continue
        rule = _rule_of(import_module(info.name))
        if rule.code in rules:
            raise TypeError(f"{info.name} and {rules[rule.code].module} both claim {rule.code}")
        rules[rule.code] = rule
    return tuple(rules[code] for code in sorted(rules))


def _rule_of(module: ModuleType) -> Rule:
    rule = getattr(module, "rule", None)
    if not isinstance(rule, Rule):
        raise TypeError(
            f"{module.__name__} defines no `rule = Rule(...)`; a helper module's name starts with _"
        )
    rule.attach(module)
    return rule


def find_rule(code_or_name: str) -> Rule:
    """One rule by `GC109`, `gc109`, `109` or `clip-after-step`."""
    wanted = code_or_name.strip().lower()
    for rule in all_rules():
        if wanted in (rule.code.lower(), rule.code[2:], rule.name):
            return rule
    raise UnknownRule(
        f"no rule is called {code_or_name!r}{_near(wanted)}; `gradclinic explain` lists them all"
    )


def matching(pattern: str) -> frozenset[str]:
    """The codes a `--select` word stands for: a code, a name, or a prefix such as GC1."""
    wanted = pattern.strip().lower()
    by_name = {rule.code for rule in all_rules() if rule.name == wanted}
    if by_name:
        return frozenset(by_name)
    if wanted == "all":
        return frozenset(rule.code for rule in all_rules())
    if wanted.startswith("gc") and (wanted[2:].isdigit() or wanted == "gc"):
        codes = frozenset(rule.code for rule in all_rules() if rule.code.lower().startswith(wanted))
        if codes:
            return codes
    raise UnknownRule(
        f"{pattern!r} selects no rule{_near(wanted)}; `gradclinic explain` lists codes and names"
    )


def _near(wanted: str) -> str:
    from difflib import get_close_matches

    words = [word for rule in all_rules() for word in (rule.code.lower(), rule.name)]
    close = get_close_matches(wanted, words, n=1, cutoff=0.6)
    return f" (did you mean {close[0].upper() if close[0].startswith('gc') else close[0]}?)" if close else ""

"""Rules are found by walking this package, so adding one touches one file.

A rule's file is called by its code and name: who only asks for those, or for the rules of one source, does
not have to run the other files. Half of the rules are of no use to `lint`, and loading them would double the
time it takes to start.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from gradclinic.errors import UsageError
from gradclinic.facts.source import Source
from gradclinic.rules._rule import Rule


class UnknownRule(UsageError):
    pass


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in order of code."""
    return tuple(_loaded(module) for module in _modules().values())


@cache
def rules_for(*sources: Source) -> tuple[Rule, ...]:
    """The rules that read what any of `sources` brings, in order of code."""
    rules = (_loaded(module) for module in _modules().values() if _mentions(module, sources))
    return tuple(rule for rule in rules if not set(sources).isdisjoint(rule.sources))


@cache
def rule_names() -> dict[str, str]:
    """What each rule is called, by code and in its order."""
    files = ((code, module.rpartition(".")[2]) for code, module in _modules().items())
    return {code: file.partition("_")[2].replace("_", "-") for code, file in files}


@cache
def _modules() -> dict[str, str]:
    """The module of each rule, by code and in its order."""
    import gradclinic.rules as package

    found: dict[str, str] = {}
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        file = info.name.rpartition(".")[2]
        if info.ispkg or file.startswith("_"):
            continue
        code = file.partition("_")[0].upper()
        if code in found:
            raise TypeError(f"{info.name} and {found[code]} both claim {code}")
        found[code] = info.name
    return dict(sorted(found.items()))


def _mentions(module: str, sources: tuple[Source, ...]) -> bool:
    """Whether the file names one of `sources`, told by its bytes without compiling or running it.

    Loaders that cannot hand them out leave it open.
    """
    spec = find_spec(module)
    get_data = getattr(spec.loader, "get_data", None) if spec is not None else None
    if spec is None or spec.origin is None or get_data is None:
        return True
    data: bytes = get_data(spec.origin)
    return any(source.name.encode() in data for source in sources)


@cache
def _loaded(name: str) -> Rule:
    module = import_module(name)
    rule = getattr(module, "rule", None)
    if not isinstance(rule, Rule):
        raise TypeError(f"{name} defines no `rule = Rule(...)`; a helper module's name starts with _")
    rule.attach(module)
    return rule


def find_rule(code_or_name: str) -> Rule:
    """One rule by `GC109`, `gc109`, `109` or `clip-after-step`."""
    wanted = code_or_name.strip().lower()
    for code, name in rule_names().items():
        if wanted in (code.lower(), code[2:], name):
            return _loaded(_modules()[code])
    raise UnknownRule(
        f"no rule is called {code_or_name!r}{_near(wanted)}; `gradclinic explain` lists them all"
    )


def matching(pattern: str) -> frozenset[str]:
    """The codes a `--select` word stands for: a code, a name, or a prefix such as GC1."""
    wanted = pattern.strip().lower()
    by_name = {code for code, name in rule_names().items() if name == wanted}
    if by_name:
        return frozenset(by_name)
    if wanted == "all":
        return frozenset(rule_names())
    if wanted.startswith("gc") and (wanted[2:].isdigit() or wanted == "gc"):
        codes = frozenset(code for code in rule_names() if code.lower().startswith(wanted))
        if codes:
            return codes
    raise UnknownRule(
        f"{pattern!r} selects no rule{_near(wanted)}; `gradclinic explain` lists codes and names"
    )


def _near(wanted: str) -> str:
    from difflib import get_close_matches

    words = [word for code, name in rule_names().items() for word in (code.lower(), name)]
    close = get_close_matches(wanted, words, n=1, cutoff=0.6)
    return f" (did you mean {close[0].upper() if close[0].startswith('gc') else close[0]}?)" if close else ""

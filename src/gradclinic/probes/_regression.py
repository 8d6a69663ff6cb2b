"""A regression test in the user's project: it holds what was found right now."""

from __future__ import annotations

import os
from pathlib import Path

from gradclinic import __version__
from gradclinic.errors import UsageError
from gradclinic.facts.variants import CompileReport, Reach

_IMPORTS = """import pytest

from gradclinic import load_case
from gradclinic.probes.compile import probe_compile"""

_TEST = '''"""Gradients of {target}: every variant trains as eager does, term by term.

Written by gradclinic {version}; write it anew after an intended change:
    gradclinic probe compile {target} --write-test {path}
"""

{imports}

{target_line}
VARIANTS = {variants!r}
REACHED = {reached}


@pytest.fixture(scope="module")
def report():
    return probe_compile(load_case(TARGET), VARIANTS)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_variant_has_the_gradients_of_eager(report, name):
    variant = next(each for each in report.variants if each.name == name)
    assert not variant.error
    wrong = {{gap.term: gap.agreement for gap in variant.wrong_terms(report.tolerance)}}
    assert not wrong, f"gradients differ from eager: {{wrong}}"
    values = {{f"{{gap.kind}} {{gap.name}}": gap.agreement for gap in variant.wrong_values(report.tolerance)}}
    assert not values, f"values differ from eager: {{values}}"


@pytest.mark.parametrize("term", REACHED)
def test_the_term_reaches_the_parameters_it_should(report, term):
    gap = next(gap for gap in report.variants[0].terms if gap.term == term)
    reached = [p.name for p in gap.parameters if p.reference == "value"]
    assert reached == REACHED[term]
'''


def write_test(path: str, target: str, report: CompileReport) -> str:
    """Write it for the variants that are right; says in a sentence what was written."""
    right = [variant for variant in report.variants if variant.agrees(report.tolerance)]
    left_out = [variant.name for variant in report.variants if variant not in right]
    if not right:
        raise UsageError("no variant agrees with eager, so there is nothing a test could hold; fix one first")
    reached = {
        gap.term: [p.name for p in gap.parameters if p.reference is Reach.VALUE] for gap in right[0].terms
    }
    target_line, imports = _target(path, target)
    text = _TEST.format(
        target=target,
        version=__version__,
        path=path,
        imports=imports,
        target_line=target_line,
        variants=[variant.name for variant in right],
        reached=_laid_out(reached),
    )
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write the test to {path}: {error.strerror}") from error
    without = f", without {', '.join(left_out)}, which is wrong now" if left_out else ""
    return f"{path} holds these gradients{without}."


def _target(path: str, target: str) -> tuple[str, str]:
    """A file is found from the test's own place, so that the test runs from anywhere."""
    place, _, function = target.rpartition(":")
    if not place.endswith(".py"):
        return f"TARGET = {target!r}", _IMPORTS
    steps = os.path.relpath(place, Path(path).parent)
    named = f'TARGET = f"{{Path(__file__).parent / {steps!r}}}:{function}"'
    return named, f"from pathlib import Path\n\n{_IMPORTS}"


def _laid_out(reached: dict[str, list[str]]) -> str:
    lines = ["{"]
    for term, names in reached.items():
        lines.append(f"    {term!r}: [")
        lines += [f"        {name!r}," for name in names]
        lines.append("    ],")
    return "\n".join([*lines, "}"])

"""From the changes a rule asks for to edits of the source, where it is written so that they fit."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from gradclinic.facts import Location
from gradclinic.findings import (
    Change,
    Edit,
    Finding,
    Fix,
    Insert,
    Keyword,
    Move,
    Remove,
    Rewrite,
    Side,
    Suffix,
    Word,
)
from gradclinic.linting.arguments import keyword_edit, suffix_edit
from gradclinic.linting.statements import Statement, Statements
from gradclinic.source_text import SourceText


class DoesNotFit(Exception):
    """The source is written in a way that this change is no matter of moving a line."""


def with_edits(findings: Iterable[Finding], source: SourceText) -> tuple[Finding, ...]:
    """The findings, their fixes carrying edits wherever the source allows it."""
    findings = tuple(findings)
    if not any(finding.fix and finding.fix.changes for finding in findings):
        return findings
    try:
        page = Statements(source)
    except SyntaxError:
        return findings  # read with patience, but not to be edited
    return tuple(
        replace(finding, fix=_edited(finding.fix, page, finding.location.path))
        if finding.fix and finding.fix.changes and finding.location
        else finding
        for finding in findings
    )


def _edited(fix: Fix, page: Statements, path: str) -> Fix:
    edits: list[Edit] = []
    safe = fix.safe
    try:
        for change in fix.changes:
            made, plain = _edits(change, page, path)
            edits += made
            safe = safe and plain
    except DoesNotFit:
        return replace(fix, safe=False, changes=())
    return replace(fix, edits=tuple(edits), safe=safe, changes=())


def _edits(change: Change, page: Statements, path: str) -> tuple[list[Edit], bool]:
    """The edits, and whether they are so plain that they cannot go wrong."""
    match change:
        case Move():
            return _move(change, page, path)
        case Insert():
            return _insert(change, page, path)
        case Rewrite():
            return _rewrite(change, page, path)
        case Remove():
            return _remove(change, page, path)
        case Keyword():
            return _inside(keyword_edit(change, _at(change.what, page, path), page, path))
        case Suffix():
            return _inside(suffix_edit(change, _at(change.what, page, path), page, path))


def _inside(edit: Edit | None) -> tuple[list[Edit], bool]:
    if edit is None:
        raise DoesNotFit
    return [edit], True


def _move(change: Move, page: Statements, path: str) -> tuple[list[Edit], bool]:
    what, to = _simple(change.what, page, path), _at(change.to, page, path)
    if what.scope is not to.scope:
        raise DoesNotFit
    plain = what.block is to.block
    if not plain:
        what, to = _brought_together(what, to, into=change.into)
    if what.block is to.block:
        passed = _between(what, to)
        if not passed or to.node not in passed:
            raise DoesNotFit
        expected = [page.at(place) for place in (change.to, *change.over)]
        plain = plain and {*passed} <= {statement.node for statement in expected if statement}
    else:
        near = to.lifted_to(what.block)
        if near is None:
            raise DoesNotFit
        passed = _between(what, near)
    if _entangled(what.node, passed) or len(what.block) == 1:
        raise DoesNotFit
    if not page.alone(what.node) or not page.alone(to.node):
        raise DoesNotFit
    first, last = page.first_line(what.node), what.node.end_lineno or 0
    lines = _indented(page, what.node, page.indent(to.node))
    taken = Edit(path, first, 0, last + 1, 0, "")
    return [taken, _beside(page, to.node, change.side, lines, path)], plain


def _brought_together(what: Statement, to: Statement, *, into: bool) -> tuple[Statement, Statement]:
    """What is alone under its condition goes with it; who need not enter a block stays outside."""
    above = to.lifted_to(what.block)
    if above is not None:
        return what, to if into else above
    while what.block is not to.block:
        around = what.parent
        if around is None or not isinstance(around.node, ast.If):
            raise DoesNotFit
        if len(around.node.body) > 1 or around.node.orelse or what.block is not around.node.body:
            raise DoesNotFit
        what = around
    return what, to


def _between(what: Statement, to: Statement) -> list[ast.stmt]:
    """The statements it passes on its way, the last one included."""
    start, end = what.position, to.position
    return what.block[start + 1 : end + 1] if start < end else what.block[end:start]


def _entangled(moved: ast.stmt, passed: Iterable[ast.stmt]) -> bool:
    """Whether one assigns what the other reads or assigns."""
    written, read = _names(moved)
    for node in passed:
        others_written, others_read = _names(node)
        if written & others_read or read & others_written or written & others_written:
            return True
    return False


def _names(node: ast.AST) -> tuple[set[str], set[str]]:
    written: set[str] = set()
    read: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            (read if isinstance(part.ctx, ast.Load) else written).add(part.id)
        elif isinstance(part, ast.Attribute):
            (read if isinstance(part.ctx, ast.Load) else written).add(f".{part.attr}")
    return written, read


def _indented(page: Statements, node: ast.stmt, indent: str) -> list[str]:
    """Its lines, with the comment above, moved to another depth."""
    lines = page.lines[page.first_line(node) - 1 : node.end_lineno]
    own = page.indent(node)
    if own == indent:
        return lines
    if any(_spans_lines(part) for part in ast.walk(node)):
        raise DoesNotFit
    return [indent + line.removeprefix(own) if line.strip() else line for line in lines]


def _spans_lines(node: ast.AST) -> bool:
    """A string of several lines, whose own spaces count."""
    text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    return text and node.lineno != node.end_lineno  # type: ignore[attr-defined]


def _insert(change: Insert, page: Statements, path: str) -> tuple[list[Edit], bool]:
    to = _simple(change.to, page, path)
    text, plain = _filled(change.text, change.words, to, page, path)
    lines = [page.indent(to.node) + text]
    return [_beside(page, to.node, change.side, lines, path)], plain


def _rewrite(change: Rewrite, page: Statements, path: str) -> tuple[list[Edit], bool]:
    what = _simple(change.what, page, path)
    call = what.node.value if isinstance(what.node, ast.Expr) else None
    if not isinstance(call, ast.Call) or call.args or call.keywords:
        raise DoesNotFit
    text, plain = _filled(change.text, change.words, what, page, path)
    node, last = what.node, what.node.end_lineno or 0
    start, end = (
        page.column(node.lineno, node.col_offset),
        len(page.lines[last - 1]) - len(page.behind(node)),
    )
    return [Edit(path, node.lineno, start, last, end, text)], plain


def _remove(change: Remove, page: Statements, path: str) -> tuple[list[Edit], bool]:
    what, twin = _simple(change.what, page, path), _at(change.repeats, page, path)
    if not isinstance(what.node, ast.Expr) or len(what.block) == 1:
        raise DoesNotFit
    node, last = what.node, what.node.end_lineno or 0
    comment = page.behind(node).strip()
    kept = page.indent(node) + comment + "\n" if comment else ""
    return [Edit(path, node.lineno, 0, last + 1, 0, kept)], what.block is twin.block


def _filled(
    text: str, words: Iterable[Word], near: Statement, page: Statements, path: str
) -> tuple[str, bool]:
    """The words put in, and whether all of them are written in the block of `near`."""
    found = [(_at(word.at, page, path), word) for word in words]
    if any(statement.scope is not near.scope for statement, _ in found):
        raise DoesNotFit
    spelled = [_spelled(word, statement, page) for statement, word in found]
    return text.format(*spelled), all(statement.block is near.block for statement, _ in found)


def _spelled(word: Word, statement: Statement, page: Statements) -> str:
    calls = [
        node
        for node in ast.walk(statement.node)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == word.method
    ]
    if len(calls) != 1:
        raise DoesNotFit
    (call,) = calls
    assert isinstance(call.func, ast.Attribute)
    if word.argument is not None and word.argument >= len(call.args):
        raise DoesNotFit
    expression = call.func.value if word.argument is None else call.args[word.argument]
    plain = all(isinstance(part, _PLAIN) for part in ast.walk(expression))
    if not plain or expression.lineno != expression.end_lineno:
        raise DoesNotFit
    return page.segment(expression)


_PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)
"""Reading it twice does no more than reading it once."""


def _at(where: Location, page: Statements, path: str) -> Statement:
    statement = page.at(where) if where.path == path else None
    if statement is None:
        raise DoesNotFit
    return statement


def _simple(where: Location, page: Statements, path: str) -> Statement:
    """A statement of its own line, not the head of a block."""
    statement = _at(where, page, path)
    if not isinstance(statement.node, ast.Expr | ast.Assign) or not page.alone(statement.node):
        raise DoesNotFit
    return statement


def _beside(page: Statements, node: ast.stmt, side: Side, lines: list[str], path: str) -> Edit:
    if side is Side.BEFORE:
        first = page.first_line(node)
        return Edit(path, first, 0, first, 0, "".join(f"{line}\n" for line in lines))
    last = node.end_lineno or 0
    end = len(page.lines[last - 1])
    return Edit(path, last, end, last, end, "".join(f"\n{line}" for line in lines))

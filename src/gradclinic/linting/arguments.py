"""Changes inside a call: a keyword more or less, a word behind an argument."""

from __future__ import annotations

import ast

from gradclinic.findings import Edit, Keyword, Suffix
from gradclinic.linting.statements import Statement, Statements


def keyword_edit(change: Keyword, statement: Statement, page: Statements, path: str) -> Edit | None:
    """None where the call is not written so that this is a matter of one line."""
    calls = [
        node
        for node in ast.walk(statement.node)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == change.method
        and (node.lineno, node.col_offset) == (change.what.line, change.what.column)
    ]
    if len(calls) != 1 or calls[0].lineno != calls[0].end_lineno:
        return None
    (call,) = calls
    given = [keyword for keyword in call.keywords if keyword.arg == change.name]
    parts: list[ast.expr | ast.keyword] = sorted(
        [*call.args, *call.keywords], key=lambda part: part.col_offset
    )
    if change.text is None:
        return _dropped(call, given, parts, page, path)
    if given:
        value = given[0].value
        return _edit(page, path, value.lineno, value.col_offset, value.end_col_offset, change.text)
    if parts:
        end = parts[-1].end_col_offset
        return _edit(page, path, call.lineno, end, end, f", {change.name}={change.text}")
    return None


def _dropped(
    call: ast.Call,
    given: list[ast.keyword],
    parts: list[ast.expr | ast.keyword],
    page: Statements,
    path: str,
) -> Edit | None:
    if len(given) != 1:
        return None
    position = parts.index(given[0])
    begin, end = given[0].col_offset, given[0].end_col_offset
    if len(parts) == 1:
        # With the spaces and the comma it may have had for itself.
        begin, end = call.func.end_col_offset or 0, call.end_col_offset
        return _edit(page, path, call.lineno, begin, end, "()")
    if position:
        begin = parts[position - 1].end_col_offset or 0
    else:
        end = parts[1].col_offset
    return _edit(page, path, call.lineno, begin, end, "")


def suffix_edit(change: Suffix, statement: Statement, page: Statements, path: str) -> Edit | None:
    node = statement.node
    value: ast.expr | None = None
    if isinstance(node, ast.AugAssign):
        value = node.value
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and len(node.value.args) == 1:
        value = node.value.args[0]
    if not isinstance(value, (ast.Name, ast.Attribute)) or value.lineno != value.end_lineno:
        return None
    return _edit(page, path, value.lineno, value.end_col_offset, value.end_col_offset, change.text)


def _edit(page: Statements, path: str, line: int, begin: int | None, end: int | None, text: str) -> Edit:
    return Edit(path, line, page.column(line, begin or 0), line, page.column(line, end or 0), text)

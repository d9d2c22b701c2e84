"""Changes of source files as data: replace a piece, put a `with` around lines, insert a line; and their patch."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simplace.suggestions.source_file import SourceFile

_STEP = "    "


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replace the characters from (line, column) to (line, column); lines count from 1, columns from 0."""

    file: str
    start: tuple[int, int]
    end: tuple[int, int]
    text: str

    @property
    def line(self) -> int:
        """Return the line that the edit is about."""
        return self.start[0]


@dataclass(frozen=True, slots=True)
class Wrapping:
    """Put lines `line` to `last` under a header such as `with tf.device("/GPU:1"):`."""

    file: str
    line: int
    last: int
    header: str


@dataclass(frozen=True, slots=True)
class Insertion:
    """Insert a line after line `line`, indented like that line."""

    file: str
    line: int
    text: str


Edit = Replacement | Wrapping | Insertion


class ConflictError(Exception):
    """Two edits change the same characters, or the result is no Python."""


def replace_node(source: SourceFile, node: ast.expr, text: str) -> Replacement:
    """Return the edit that puts a text in place of an expression."""
    last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    start = (node.lineno, source.column(node.lineno, node.col_offset))
    return Replacement(source.name, start, (last, source.column(last, end)), text)


def add_argument(source: SourceFile, call: ast.Call, text: str) -> Replacement | None:
    """Return the edit that adds an argument by name to a call, None where parentheses leave no certain place."""
    given: list[ast.expr] = [*call.args, *(keyword.value for keyword in call.keywords)]
    last = max(given, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0), default=call.func)
    line, end = last.end_lineno or last.lineno, call.end_lineno or call.lineno
    start, stop = source.column(line, last.end_col_offset or 0), source.column(end, call.end_col_offset or 0)
    lines = [*source.lines[line - 1 : end]]
    lines[-1] = lines[-1][:stop]
    after = "".join(lines)[start:]
    if after.count(")") != 1:
        return None
    start += 0 if given else after.index("(") + 1
    return Replacement(source.name, (line, start), (line, start), f", {text}" if given else text)


def wrap_statement(source: SourceFile, node: ast.stmt, header: str) -> Wrapping:
    """Return the edit that puts a statement under a header."""
    return Wrapping(source.name, node.lineno, node.end_lineno or node.lineno, header)


def apply_edits(source: SourceFile, edits: Iterable[Edit]) -> str:
    """Return the text of a file after the edits that are of it.

    Neighbouring lines that get the same header share one. Raises `ConflictError`.
    """
    own = sorted(dict.fromkeys(edit for edit in edits if edit.file == source.name), key=_order)
    lines: list[str | None] = list(source.lines)
    before: tuple[int, int] | None = None
    for replacement in reversed([edit for edit in own if isinstance(edit, Replacement)]):
        if before is not None and replacement.end > before:
            raise ConflictError(f"{source.name}:{replacement.line}")
        _replace(lines, replacement)
        before = replacement.start
    for wrapping in reversed(_join_wrappings(source, [edit for edit in own if isinstance(edit, Wrapping)])):
        _wrap(source, lines, wrapping)
    for edit in own:
        if isinstance(edit, Insertion):
            indent = _indent(source.lines[edit.line - 1])
            lines[edit.line - 1] = f"{_ended(source, lines[edit.line - 1] or '')}{indent}{edit.text}{source.newline}"
    text = "".join(line for line in lines if line is not None)
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise ConflictError(f"{source.name}:{error.lineno}") from error
    return text


def write_patch(source: SourceFile, text: str) -> str:
    """Return the patch from a file to its new text, in the unified format, which `patch -p0` and `git apply` take.

    >>> print(write_patch(SourceFile("m.py", "a = 1\\nb = 2\\n"), "a = 1\\nb = 3\\n"), end="")
    --- m.py
    +++ m.py
    @@ -1,2 +1,2 @@
     a = 1
    -b = 2
    +b = 3
    """
    new = text.splitlines(keepends=True)
    made = difflib.unified_diff(source.lines, new, source.name, source.name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in made)


def _order(edit: Edit) -> tuple[int, int]:
    return (edit.line, edit.start[1] if isinstance(edit, Replacement) else 0)


def _replace(lines: list[str | None], edit: Replacement) -> None:
    (first, left), (last, right) = edit.start, edit.end
    head, tail = lines[first - 1] or "", lines[last - 1] or ""
    lines[first - 1] = head[:left] + edit.text + tail[right:]
    for between in range(first, last):
        lines[between] = None


def _join_wrappings(source: SourceFile, wrappings: Sequence[Wrapping]) -> list[Wrapping]:
    """Join wrappings with one header whose lines follow each other; raise `ConflictError` where they overlap."""
    joined: list[Wrapping] = []
    for one in wrappings:
        last = joined[-1] if joined else None
        if last is not None and one.line <= last.last:
            raise ConflictError(f"{one.file}:{one.line}")
        if last is not None and one.header == last.header and _follows(source, last, one):
            joined[-1] = Wrapping(one.file, last.line, one.last, one.header)
        else:
            joined.append(one)
    return joined


def _follows(source: SourceFile, before: Wrapping, one: Wrapping) -> bool:
    """Return whether a wrapping is of the next lines of the same block, but for empty ones."""
    between = source.lines[before.last : one.line - 1]
    same = _indent(source.lines[before.line - 1]) == _indent(source.lines[one.line - 1])
    return same and not any(line.strip() for line in between)


def _wrap(source: SourceFile, lines: list[str | None], edit: Wrapping) -> None:
    indent = _indent(source.lines[edit.line - 1])
    step = "\t" if indent.startswith("\t") else _STEP
    for number in range(edit.line, edit.last + 1):
        line = lines[number - 1]
        if line and line.strip() and number not in source.in_strings:
            lines[number - 1] = step + line
    lines[edit.line - 1] = f"{indent}{edit.header}{source.newline}{lines[edit.line - 1] or ''}"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _ended(source: SourceFile, line: str) -> str:
    return line if line.endswith("\n") else f"{line}{source.newline}"

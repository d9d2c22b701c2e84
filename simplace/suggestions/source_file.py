"""A file of the user's program: its text, its statements by line, and the names that it gives to modules."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_COMPOUND = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.FunctionDef,
             ast.AsyncFunctionDef, ast.ClassDef, ast.Match)  # fmt: skip
ON_DEVICE, UPDATE_IN_PLACE = "on_device", "update_in_place"  # functions that a suggestion adds to a file
_UNMOVABLE = (*_COMPOUND, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass)


@dataclass(frozen=True)
class SourceFile:
    """Record of a file: `name` as reasons show it (relative to the working directory where it is inside), its text.

    The ends of lines are those of the file; `encoding` is what Python reads it with.
    """

    name: str
    text: str
    encoding: str = "utf-8"

    @classmethod
    def read(cls, name: str) -> SourceFile | None:
        """Read a file; return None for one that is not there, or that Python could not parse."""
        try:
            with open(name, "rb") as file:
                encoding, _ = tokenize.detect_encoding(file.readline)
            with open(name, encoding=encoding, newline="") as text:
                found = cls(name, text.read(), encoding)
            ast.parse(found.text)
        except (OSError, SyntaxError, ValueError):  # ValueError: a NUL, or no encoding that Python knows
            return None
        return found

    @cached_property
    def path(self) -> Path:
        """Return the file's absolute path, with symbolic links resolved."""
        return Path(self.name).resolve()

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """List the lines, with their ends; line 1 is the first."""
        return tuple(self.text.splitlines(keepends=True))

    @property
    def newline(self) -> str:
        """Return what the file's lines end with."""
        return "\r\n" if self.lines and self.lines[0].endswith("\r\n") else "\n"

    @cached_property
    def tree(self) -> ast.Module:
        """Return the syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """List all calls by line, outer ones first."""
        found = (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))
        return tuple(sorted(found, key=lambda call: (call.lineno, call.col_offset, -_last_line(call))))

    @cached_property
    def in_strings(self) -> frozenset[int]:
        """Number the lines that begin inside a string, whose indentation is part of its value."""
        inside: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.start[0] != token.end[0] and token.type not in (tokenize.NEWLINE, tokenize.NL):
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
        return frozenset(inside)

    def find_module(self, module: str) -> str:
        """Return the name that the file gives to a module, such as "tf", "" if it does not import it."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == module:
                        return alias.asname or alias.name
            if isinstance(node, ast.ImportFrom) and node.module == module.rpartition(".")[0] and "." in module:
                for alias in node.names:
                    if alias.name == module.rpartition(".")[2]:
                        return alias.asname or alias.name
        return ""

    def find_import(self, name: str) -> ast.stmt | None:
        """Return the first statement at the top level of the file that imports a name, or the `name` of `name.of`."""
        first = name.partition(".")[0]
        for node in self.tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)) and first in map(_bound_name, node.names):
                return node
        return None

    @cached_property
    def added_lines(self) -> frozenset[int]:
        """Number the lines of functions that a suggestion adds: what these say is no choice of the user's."""
        added = (node for node in self.tree.body if isinstance(node, ast.FunctionDef))
        found = (node for node in added if node.name in (ON_DEVICE, UPDATE_IN_PLACE))
        return frozenset(line for node in found for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))

    def statement_at(self, line: int) -> ast.stmt | None:
        """Return the statement that a `with` could be put around for the ops of a line; None for a line without one.

        It is the innermost simple statement that the line is part of. A statement that shares its lines with another
        cannot be indented by itself.
        """
        if line in self.added_lines:
            return None
        inner = None
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and node.lineno <= line <= _last_line(node) and not _is_worse(node, inner):
                inner = node
        if inner is None or isinstance(inner, _UNMOVABLE) or self._shares_lines(inner):
            return None
        return inner

    def scopes_around(self, line: int) -> list[ast.Call]:
        """List the `tf.device` calls whose `with` statements a line is inside of, the outermost first."""
        found = [
            item.context_expr
            for node in ast.walk(self.tree)
            if isinstance(node, ast.With) and node.body[0].lineno <= line <= _last_line(node)
            for item in node.items
            if is_device_scope(item.context_expr)
        ]
        return sorted((call for call in found if isinstance(call, ast.Call)), key=lambda call: call.lineno)

    def scope_at(self, line: int) -> ast.Call | None:
        """Return the `tf.device` call of a `with` statement that begins at a line, but for one that was added."""
        if line in self.added_lines:
            return None
        for node in ast.walk(self.tree):
            if isinstance(node, ast.With) and node.lineno <= line < node.body[0].lineno:
                for item in node.items:
                    if is_device_scope(item.context_expr) and isinstance(item.context_expr, ast.Call):
                        return item.context_expr
        return None

    def segment(self, node: ast.AST) -> str:
        """Return the source of an expression."""
        return ast.get_source_segment(self.text, node) or ""

    def column(self, line: int, offset: int) -> int:
        """Return the character that a byte offset of `ast` stands for."""
        return len(self.lines[line - 1].encode()[:offset].decode(errors="ignore"))

    def _shares_lines(self, node: ast.stmt) -> bool:
        first, last = self.lines[node.lineno - 1], self.lines[_last_line(node) - 1]
        before = first[: self.column(node.lineno, node.col_offset)].strip()
        after = last[self.column(_last_line(node), node.end_col_offset or 0) :].strip()
        return bool(before) or bool(after and not after.startswith("#"))


def list_files(names: Iterator[str], script: str) -> list[SourceFile]:
    """Read the files of the program that lie beside the script or below it: those that a user would change."""
    home = Path(script).resolve().parent
    files: dict[Path, SourceFile] = {}
    for name in names:
        path = Path(name).resolve()
        if path in files or not path.is_relative_to(home) or not _is_regular(path):
            continue
        found = SourceFile.read(name)
        if found is not None:
            files[path] = found
    return list(files.values())


def is_device_scope(node: ast.AST) -> bool:
    """Return whether an expression is a call of `device`, as in `with tf.device(...)`, with one argument.

    >>> is_device_scope(ast.parse("tf.device('/GPU:0')", mode="eval").body)
    True
    """
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name == "device"


def _bound_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _is_regular(path: Path) -> bool:
    return path.is_file() and path.suffix == ".py"


def _is_worse(node: ast.stmt, inner: ast.stmt | None) -> bool:
    """Return whether a statement contains the one found so far; a statement's own lines are fewer."""
    return inner is not None and _last_line(node) - node.lineno > _last_line(inner) - inner.lineno


def _last_line(node: ast.expr | ast.stmt) -> int:
    return node.end_lineno or node.lineno

"""The handlers of errors around the line that the program executes, and which of TensorFlow's errors they take."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import FrameType
from typing import Any

import tensorflow as tf

from simplace.oracle.child.failures import list_codes
from simplace.oracle.child.frame_locals import read_local
from simplace.oracle.child.replaced_sources import read_source
from simplace.oracle.child.source_lines import SourceLines

_ENDING = ("exit", "quit", "_exit", "abort", "fail")
# Context managers that take the errors of the types that they are given, by the root of their module.
_MANAGERS = {"contextlib": ("suppress",), "unittest": ("assertRaises", "assertRaisesRegex"), "_pytest": ("raises",)}


@dataclass(frozen=True, slots=True)
class _Clause:
    """Record of what handles errors: its line, the types that it names, None for all of them, and what it does then.

    `is_passing` tells that it may raise the same error again, `is_ending` that it may raise another or end the program.
    `manager` is what makes the context manager of a `with` statement, None for an `except` clause.
    """

    line: int
    types: ast.expr | None
    is_passing: bool = False
    is_ending: bool = False
    manager: ast.expr | None = None


@dataclass(frozen=True, slots=True)
class _Try:
    """Record of a `try` or `with` statement: the first and the last line of its body, and what handles its errors."""

    first: int
    last: int
    clauses: tuple[_Clause, ...]


def find_handlers(lines: SourceLines) -> dict[str, str]:
    """Return, by status code, the user's line of the `except` or `with` after which the program would go on.

    A code is left out where no clause takes the error, or one that raises or ends the program.
    """
    found: dict[str, str] = {}
    left = {name: tf.compat.v1.errors.exception_type_from_error_code(code) for code, name in list_codes()}
    frame = inspect.currentframe()
    while frame is not None and left:
        shown = lines.name_file(frame.f_code)
        for statement in _tries_around(frame) if shown else ():
            for code, kind in list(left.items()):
                clause = next((each for each in statement.clauses if _takes(each, kind, frame)), None)
                if clause is None or clause.is_passing:
                    continue
                del left[code]
                if not clause.is_ending:
                    found[code] = f"{shown}:{clause.line}"
        frame = frame.f_back
    return found


def _tries_around(frame: FrameType) -> Iterator[_Try]:
    """Yield the statements whose body a frame executes, the innermost first."""
    around = (each for each in _list_tries(frame.f_code.co_filename) if each.first <= frame.f_lineno <= each.last)
    yield from sorted(around, key=lambda each: each.last - each.first)


@cache
def _list_tries(filename: str) -> tuple[_Try, ...]:
    """List the statements of a file that may handle errors, none where it is not there, such as that of a string."""
    try:
        tree = ast.parse(read_source(filename))
    except (OSError, SyntaxError, ValueError):
        return ()
    return tuple(
        _Try(node.body[0].lineno, node.body[-1].end_lineno or 0, _read_clauses(node))
        for node in ast.walk(tree)
        if isinstance(node, (ast.Try, ast.TryStar, ast.With, ast.AsyncWith))
    )


def _read_clauses(statement: ast.Try | ast.TryStar | ast.With | ast.AsyncWith) -> tuple[_Clause, ...]:
    """List what handles the errors of a statement, the innermost first."""
    if isinstance(statement, (ast.Try, ast.TryStar)):
        return tuple(map(_read_clause, statement.handlers))
    made = [item.context_expr for item in reversed(statement.items)]
    return tuple(
        _Clause(call.lineno, ast.Tuple(call.args), manager=call.func) for call in made if isinstance(call, ast.Call)
    )


def _read_clause(handler: ast.ExceptHandler) -> _Clause:
    raised = [node for each in handler.body for node in ast.walk(each) if isinstance(node, ast.Raise)]
    called = [node.func for each in handler.body for node in ast.walk(each) if isinstance(node, ast.Call)]
    again = [node for node in raised if node.exc is None or _last_name(node.exc) == handler.name]
    is_ending = len(again) < len(raised) or any(_last_name(function) in _ENDING for function in called)
    return _Clause(handler.lineno, handler.type, bool(again), is_ending)


def _last_name(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _takes(clause: _Clause, kind: type[BaseException], frame: FrameType) -> bool:
    """Return whether a clause takes errors of a kind; one whose types are computed is taken for one that does not."""
    if clause.manager is not None and not _is_manager(_find_value(clause.manager, frame)):
        return False
    if clause.types is None:
        return True
    parts = clause.types.elts if isinstance(clause.types, ast.Tuple) else [clause.types]
    return any(_is_type_of(part, kind, frame) for part in parts)


def _is_manager(made_by: Any) -> bool:
    """Return whether what makes a context manager is one that takes errors."""
    module, name = getattr(made_by, "__module__", None) or "", getattr(made_by, "__name__", "")
    return name in _MANAGERS.get(module.partition(".")[0], ())


def _is_type_of(part: ast.expr, kind: type[BaseException], frame: FrameType) -> bool:
    named = _find_value(part, frame)
    each: Sequence[Any] = named if isinstance(named, tuple) else (named,)
    return any(isinstance(one, type) and issubclass(kind, one) for one in each)


def _find_value(node: ast.expr, frame: FrameType) -> Any:
    """Return what a dotted name stands for in a frame, None where it stands for nothing there."""
    if isinstance(node, ast.Attribute):
        return getattr(_find_value(node.value, frame), node.attr, None)
    if not isinstance(node, ast.Name):
        return None
    named = frame.f_globals.get(node.id, vars(builtins).get(node.id))
    return read_local(frame, node.id, named)

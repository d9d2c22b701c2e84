"""The user's program run as `python model.py` would run it, and what became of it."""

from __future__ import annotations

import sys
import traceback
import types
from pathlib import Path
from typing import Any

from simplace.oracle.inside.calls import Stopped
from simplace.oracle.inside.clusters import NoSuchCluster
from simplace.oracle.inside.source_lines import SourceLines

_HEAD = "Traceback (most recent call last):"
_NO_PACKAGE = "a script is no part of a package, for Python neither: give one that imports the package"


def new_main(script: str, arguments: tuple[str, ...]) -> types.ModuleType:
    """Make the module that a script is executed in, and what it finds in `sys`."""
    module = types.ModuleType("__main__")
    module.__file__ = script
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    return module


def run(module: types.ModuleType) -> None:
    """Execute the script of `new_main`, to its end."""
    script = str(module.__file__)
    exec(compile(Path(script).read_bytes(), script, "exec", dont_inherit=True), module.__dict__)


def failure_of(error: BaseException, lines: SourceLines) -> dict[str, Any] | None:
    """Describe how a program ended early: None if it was stopped here or left with status 0."""
    if isinstance(error, Stopped):
        return None
    if isinstance(error, NoSuchCluster):
        return {"how": "exited", "text": str(error)}
    if isinstance(error, SystemExit):
        if error.code in (None, 0):
            return None
        is_number = isinstance(error.code, int)
        text = f"the program ended with exit status {error.code if is_number else 1}"
        return {"how": "exited", "text": text if is_number else f"{text}\n{error.code}"}
    return {"how": "raised", "text": _traceback(error, lines), "line": _line(error, lines)}


def _traceback(error: BaseException, lines: SourceLines) -> str:
    """Write a traceback of the user's own frames alone, with what the exception came from or is a group of."""
    shown = traceback.TracebackException.from_exception(error, compact=True)
    _keep_own(shown, lines)
    return "".join(shown.format()).replace(_HEAD, f"{_HEAD[:-2]}, the program's own lines):").rstrip()


def _keep_own(shown: traceback.TracebackException, lines: SourceLines) -> None:
    """Drop all frames that are not the user's, and exceptions on the way that have no other."""
    own = lines.of_traceback(shown.stack)
    shown.stack = traceback.StackSummary.from_list(own) if own else None  # type: ignore[assignment]
    for part in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if part is not None:
            _keep_own(part, lines)
    if shown.__context__ is not None and shown.__context__.stack is None:
        shown.__context__ = None


def _line(error: BaseException, lines: SourceLines) -> str:
    """Write the exception in one line, with the user's line that it comes from and what else to try."""
    name = type(error).__qualname__
    texts = "".join(traceback.format_exception_only(error)).splitlines()
    what = next((text for text in texts if text.partition(":")[0].rpartition(".")[2] == name.rpartition(".")[2]), name)
    own = lines.of_traceback(traceback.extract_tb(error.__traceback__))
    at = f" at {own[-1].filename}:{own[-1].lineno}" if own else ""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        at = f" at {error.filename}:{error.lineno}"
    hint = f"; {_NO_PACKAGE}" if isinstance(error, ImportError) and "no known parent package" in str(error) else ""
    return f"{what}{at}{hint}"

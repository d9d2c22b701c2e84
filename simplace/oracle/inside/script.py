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
        return {"how": "exited", "text": f"the program ended with exit status {error.code}"}
    return {"how": "raised", "text": _traceback(error, lines)}


def _traceback(error: BaseException, lines: SourceLines) -> str:
    """Write a traceback of the user's own frames alone, with the exception's text after them."""
    frames = lines.of_traceback(traceback.extract_tb(error.__traceback__))
    head = ["Traceback (most recent call last, the program's own lines):\n", *traceback.format_list(frames)]
    return "".join((head if frames else []) + traceback.format_exception_only(error)).rstrip()

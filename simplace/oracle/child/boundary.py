"""Whose an exception is: raised by simplace's own code, or by the TensorFlow or program code that it wraps.

Each wrapper around TensorFlow calls what it wraps through `wrap_foreign`. An exception that leaves simplace's code in
any other way was caused by simplace itself, and is not the program's.
"""

from __future__ import annotations

import functools
import os
import traceback
from collections.abc import Callable
from itertools import pairwise, takewhile
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from simplace.errors import SimplaceError

_OWN = str(Path(__file__).parents[2]) + os.sep
_WRAPPERS = str(Path(__file__).parent) + os.sep
_OF_THE_PROGRAM = (RecursionError, MemoryError)  # what the program used up, wherever it shows
_ASKS = "_FallbackException"  # what sends TensorFlow to an op's slow path: no error, and raised for many ops


def wrap_foreign(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` such that what it raises is TensorFlow's or the program's."""

    @functools.wraps(call, assigned=())
    def handed_over(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    return handed_over


def raise_as_theirs(error: BaseException) -> NoReturn:
    """Raise what the program is to see as TensorFlow's.

    Without `del`, the exception and this frame would hold each other, and so, until garbage is collected next, all that
    the callers hold: a variable would outlive its last reference.
    """
    try:
        raise error
    finally:
        del error


def forget_frames(error: BaseException) -> None:
    """Drop the traceback of an exception that was handled, since its frames hold what the callers hold."""
    error.__traceback__ = None


def drop_own_frames(error: BaseException) -> None:
    """Remove simplace's frames from the traceback of an exception that was caught here and goes on to the caller.

    Nothing changes where the caller is simplace, which asks the frames whose the exception is.
    """
    step = error.__traceback__
    caller = None if step is None else step.tb_frame.f_back
    if type(error).__name__ == _ASKS or (caller is not None and _is_own_file(caller.f_code.co_filename)):
        return
    kept: list[TracebackType | None] = []
    while step is not None:
        if not _is_own_file(step.tb_frame.f_code.co_filename):
            kept.append(step)
        step = step.tb_next
    for outer, inner in pairwise([*kept, None]):
        if outer is not None:
            outer.tb_next = inner
    error.__traceback__ = next(iter(kept), None)


def is_own(error: BaseException | None) -> bool:
    """Return whether an exception, or one that it came of, is simplace's own.

    What simplace answers a program that calls it as a library, such as that it has no such node, is the program's.
    """
    if type(error).__name__ == _ASKS:
        return False
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, Exception) and not isinstance(error, _OF_THE_PROGRAM) and _leaves_own_code(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _leaves_own_code(error: BaseException) -> bool:
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, SimplaceError) and _calls_library(files):
        return False
    steps = pairwise([*files, ""])  # none where TensorFlow has filtered all frames out
    return any(_is_own_file(file) and not _is_own_file(inner) for file, inner in steps if file != __file__)


def _calls_library(files: list[str]) -> bool:
    """Return whether the last frames, those of simplace, begin where a program calls it, not where it wraps a call."""
    own = list(takewhile(_is_own_file, reversed(files)))
    return len(own) < len(files) and bool(own) and not own[-1].startswith(_WRAPPERS)


def _is_own_file(file: str) -> bool:
    return file.startswith(_OWN)

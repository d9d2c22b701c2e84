"""The local variables of a running frame, read so that the frame keeps none of them alive.

Up to Python 3.12 a frame keeps the dictionary that `f_locals` returns, with all its variables, to its end: what the
program deletes in the meantime, such as a function that captures an iterator, would not go.
"""

from __future__ import annotations

import sys
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any

_OURS = 3  # references to a dictionary that nobody else holds: the frame's, a variable, and getrefcount's argument


def read_local(frame: FrameType, name: str, default: Any = None) -> Any:
    """Return the value of a local variable, `default` where the frame has none of this name."""
    code = frame.f_code
    if not code.co_flags & CO_OPTIMIZED:  # a module or the body of a class, whose variables are a dictionary
        return frame.f_locals.get(name, default)
    if name not in code.co_varnames and name not in code.co_cellvars and name not in code.co_freevars:
        return default
    found = frame.f_locals
    value = found.get(name, default)
    if type(found) is dict and sys.getrefcount(found) <= _OURS:  # the program may hold it, as what `locals` returned
        found.clear()
    return value

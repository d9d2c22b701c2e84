"""Which threads are inside of a function or of simplace's own work, where no op is one of the program's eager ops."""

from __future__ import annotations

import threading
from typing import Any

from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.tf_private import script_ops

_here = threading.local()


def is_inside() -> bool:
    """Return whether this thread is inside of a function, or of work that is not the program's own."""
    return getattr(_here, "depth", 0) > 0


def is_in_py_function() -> bool:
    """Return whether this thread runs the Python of a `tf.py_function`, or of a generator of a dataset."""
    return getattr(_here, "py_functions", 0) > 0


class _OwnWork:
    """Count what a thread runs between entering and leaving as inside; a class, since each eager op enters it."""

    def __enter__(self) -> None:
        _here.depth = getattr(_here, "depth", 0) + 1

    def __exit__(self, *error: object) -> None:
        _here.depth -= 1


INSIDE = _OwnWork()


def watch_py_functions() -> None:
    """Count as inside what a `tf.py_function` or a generator of a dataset runs: the function around it is placed."""

    def wrap(call: Any) -> Any:
        def call_inside(self: Any, *args: Any) -> Any:
            with INSIDE:
                _here.py_functions = getattr(_here, "py_functions", 0) + 1
                try:
                    return call(self, *args)
                finally:
                    _here.py_functions -= 1

        return call_inside

    patch_method(script_ops.FuncRegistry, "__call__", wrap)

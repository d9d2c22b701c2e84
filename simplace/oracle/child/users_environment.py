"""The environment variables as the user has set them, for the program to read; TensorFlow reads those of the run."""

from __future__ import annotations

import json
import os

from simplace.oracle import protocol

_given: dict[str, str | None] = {}


def show_users_environment() -> None:
    """Set `os.environ` to what the user has set: a run needs other values, which stay in the process's environment.

    The values are put behind the methods of `os.environ`, since these would set those of the process, too.
    """
    _given.update(json.loads(os.environ.pop(protocol.GIVEN_VARIABLES, "{}")))
    shown = os.environ._data  # type: ignore[attr-defined]
    for name, value in _given.items():
        if value is None:
            shown.pop(os.environ.encodekey(name), None)
        else:
            shown[os.environ.encodekey(name)] = os.environ.encodevalue(value)


def is_as_given(name: str) -> bool:
    """Return whether the program has left a variable as its user has set it."""
    return os.environ.get(name) == _given.get(name)

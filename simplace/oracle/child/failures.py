"""TensorFlow's errors, as its runtime raises them in any version: their code, and what they are about."""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

from simplace.oracle.child.tf_private import core

FAILURES = (
    getattr(core, "_NotOkStatusException", tf.errors.OpError),
    tf.errors.OpError,
)  # older versions raise the first
_CODES = {value: name for name, value in vars(tf.errors).items() if name.isupper() and type(value) is int}
# What ValidateInputTypeAndPlacement of eager/execute.cc says after a function is placed and before it begins.
_REJECTION = re.compile(
    r"(Tensors on conflicting devices: )?cannot compute .* as input #|expected \d+ inputs, got"
    r"|Failed copying input tensor"
)
_COPYING = re.compile(r"Failed copying input tensor from \S+ to (\S+) in order to run ")


def list_codes() -> list[tuple[int, str]]:
    """List TensorFlow's status codes and their names, but for that of success."""
    return [(number, name) for number, name in sorted(_CODES.items()) if number]


def code_name(code: int) -> str:
    """Return the name of a status code.

    >>> code_name(3)
    'INVALID_ARGUMENT'
    """
    return str(_CODES.get(code, code))


def is_rejection(error: Any) -> bool:
    """Return whether an error is about an argument, which TensorFlow looks at when it has placed a function or op."""
    return bool(_REJECTION.match(str(error.message)))


def find_copy_target(error: Any) -> str:
    """Return where TensorFlow would run a function or op, "" unless it failed to copy an argument there."""
    found = _COPYING.match(str(error.message))
    return found[1] if found else ""


def find_code(error: Any) -> int:
    """Return the status code of an error of any version."""
    return int(error.error_code if isinstance(error, tf.errors.OpError) else error.code)

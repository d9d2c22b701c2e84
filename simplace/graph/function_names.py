"""The names that TensorFlow generates for traced functions, as their author knows them."""

from __future__ import annotations

import re

_GENERATED = re.compile(r"^__(inference|forward|backward)_(.+)_\d+$")


def shown_name(name: str) -> str:
    """Return the name of a function that its author knows.

    >>> [shown_name(name) for name in ("__inference_step_123", "__forward_f_2_9", "__inference___backward_f_4_17")]
    ['step', 'f_2 (forward)', 'f (backward)']
    """
    part = ""
    while found := _GENERATED.match(name):
        part, name = found[1], found[2]
    return f"{name} ({part})" if part in ("forward", "backward") else name

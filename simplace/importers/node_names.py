"""Check the names of nodes as an import and as a function's body are checked, with TensorFlow's messages.

Mirrors `IsValidNodeName` and `BuildNodeIndex` of tensorflow/core/common_runtime/graph_constructor.cc.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_REST = "[A-Za-z0-9_./-]*"
_PART = f"[A-Za-z0-9.]{_REST}"
is_node_name = re.compile(rf"{_PART}(?:>{_PART})*\Z").match
is_internal_name = re.compile(rf"(?:{_PART}|_{_REST})(?:>{_PART})*\Z").match  # of a body, where it may begin with _


def find_name_fault(name: str, seen: set[str], is_valid: Callable[[str], object]) -> str:
    """Return what is wrong with a name after those that were `seen`, which it joins; "" for nothing.

    >>> find_name_fault("a", {"a"}, is_node_name), find_name_fault("_a>b", set(), is_internal_name)
    ("Node 'a' is not unique", '')
    """
    if not is_valid(name):
        return f"Node '{name}': Node name contains invalid characters"
    if name in seen:
        return f"Node '{name}' is not unique"
    seen.add(name)
    return ""

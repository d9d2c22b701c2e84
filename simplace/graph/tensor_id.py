"""What the input of a node says: an output of a node, or the node itself to wait for.

Mirrors `ParseTensorName` of tensorflow/core/graph/tensor_id.cc.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from simplace.graph.builder import CONTROL

Slot = tuple[int, int]  # the place of a node in its list, and one of its outputs, `CONTROL` for a control edge

_TENSOR = re.compile(r"(.+):([0-9]+)\Z", re.DOTALL)
_DIGITS = 20  # what has more is too large for 64 bits


def parse_tensor_name(text: str) -> tuple[str, int]:
    """Split an input into a node's name and an output, -1 for a control input.

    >>> parse_tensor_name("a:1"), parse_tensor_name("^a"), parse_tensor_name("a:b"), parse_tensor_name(":1")
    (('a', 1), ('a', -1), ('a:b', 0), (':1', 0))
    >>> parse_tensor_name("a:4294967297"), parse_tensor_name("a:18446744073709551616")
    (('a', 1), ('a:18446744073709551616', 0))
    """
    found = _TENSOR.match(text)
    if found is not None:
        digits = found[2].lstrip("0")[: _DIGITS + 1]
        if int(digits or "0") < 1 << 64:  # else it is no number, and belongs to the name
            return found[1], int(digits or "0") % (1 << 32)  # a uint32, in TensorFlow
    return (text[1:], CONTROL) if text.startswith("^") else (text, 0)


class TensorSlots(dict[str, Slot]):
    """Map what inputs say to slots, each text parsed once; a text that names no node raises `KeyError`.

    >>> slots = TensorSlots({"a": (0, 0), "b": (1, 0)})
    >>> slots["b:1"], slots["^a"], slots["a"]
    ((1, 1), (0, -1), (0, 0))
    """

    def __init__(self, first_outputs: Mapping[str, Slot]) -> None:
        super().__init__(first_outputs)  # as most inputs name the first output of a node
        self._first_outputs = first_outputs

    def __missing__(self, text: str) -> Slot:
        name, slot = parse_tensor_name(text)
        if name not in self._first_outputs:
            raise KeyError(text)
        found = self[text] = self._first_outputs[name][0], slot
        return found

"""Eager ops in the user's own process: each op of each line once, the others counted.

To look for the user's line takes a tenth of the time of an op. So as soon as nothing new has come for a while, only
every thirtieth op is looked at, which then stands for thirty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from simplace.oracle.child import eager_device
from simplace.oracle.child.eager_log import is_small
from simplace.oracle.child.own_work import is_inside
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tensors import find_host, resource_device

_EACH = 1000  # ops without anything new, until which each is looked at
_SKIPPED = 28  # at least so many of the later ones are not, and up to six more, lest a loop keeps step with it
Input = tuple[int, str, bool]  # type, device, whether it is a small integer


@dataclass(slots=True, eq=False)
class WatchedOp:
    """Record of an eager op of a line: what its device depended on the first time, and that device ("": unknown).

    `library` is what made it for the line, "" where the line asks for it itself. `times` is how often it ran, as far as
    it was looked at, and an estimate from then on.
    """

    op: str
    at: str
    library: str
    scope: str
    soft_placement: bool
    attrs: tuple[Any, ...]  # names and values in turns
    inputs: tuple[Input, ...]
    device: str = ""
    has_failed: bool = False
    times: int = 1


class WatchedOps:
    """Look at eager ops."""

    def __init__(self, lines: SourceLines) -> None:
        self.is_sampled = False
        self._lines = lines
        self._ops: dict[tuple[str, str, str], WatchedOp | None] = {}
        self._quiet = 0
        self._skips = 0

    def list_ops(self) -> list[WatchedOp]:
        """Return the ops that were seen, in the order in which the first ran."""
        return [each for each in self._ops.values() if each is not None and not each.has_failed]

    def wants_slow_path(self, op: str) -> bool:
        """Count an op that is known; return whether it is new, and its inputs and attributes are to be seen."""
        if self._skips:
            self._skips -= 1
            return False
        if is_inside():
            return False
        key = (op, *self._lines.trace_op())
        if key not in self._ops:
            self._ops[key] = None
            self._quiet = 0
            return True
        known = self._ops[key]
        if known is not None:
            known.times += 1 + self._choose_skips()
        return False

    def begin(self, op: str, scope: str, inputs: Any, attrs: Any) -> WatchedOp | None:
        """Note an op that is new, and came by the slow path."""
        if self._skips:  # an op that has no fast path
            return None
        key = (op, *self._lines.trace_op())
        if self._ops.get(key) is not None:
            return None
        described = tuple([_describe(tensor) for tensor in inputs])
        soft = eager_device.soft_placement()
        made = self._ops[key] = WatchedOp(op, key[1], key[2], scope, soft, tuple(attrs or ()), described)
        return made

    def end(self, op: WatchedOp, results: Any, error: BaseException | None) -> None:
        """Note the device of an op's results, which is that of the op."""
        op.has_failed = error is not None
        found: Sequence[Any] = results or ()
        op.device = next((str(each.device) for each in found), "")

    def _choose_skips(self) -> int:
        """Return how many of the next ops are not looked at."""
        self._quiet += 1
        if self._quiet < _EACH:
            return 0
        self.is_sampled = True
        self._skips = _SKIPPED + self._quiet % 7
        return self._skips


def _describe(tensor: Any) -> Input:
    dtype = tensor._datatype_enum()
    if dtype == tf.resource.as_datatype_enum:
        return dtype, resource_device(tensor), False
    where = tensor.backing_device
    return dtype, where or find_host(), is_small(tensor, dtype)

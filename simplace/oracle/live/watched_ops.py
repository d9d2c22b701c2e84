"""Eager ops in the user's own process: each op of each line once, the others counted.

To look for the user's line takes as long as an op. So as soon as nothing new has come for a while, only every
thirtieth op is looked at, which then stands for thirty; and after some of those, none for ten times as long, when
TensorFlow's fast path is its own. What runs meanwhile is taken to be as before; TensorFlow's own count of tensors tells
how much.
"""

from __future__ import annotations

import _thread
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from simplace.oracle.child import eager_device
from simplace.oracle.child.own_work import is_inside
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tensors import find_host, resource_device
from simplace.oracle.child.tf_private import ops

_EACH = 1000  # ops without anything new, until which each is looked at
_SKIPPED = 28  # at least so many of the later ones are not, and up to six more, lest a loop keeps step with it
_LOOKS = 100  # of the later ones that are, until none is for a while
_SHORTEST, _LONGEST = 0.25, 1.0  # seconds without a look
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
    """Observe eager ops."""

    def __init__(self, lines: SourceLines, rest: Callable[[], None], wake: Callable[[], None]) -> None:
        self.is_sampled = False
        self.is_resting = False
        self._rest, self._wake = rest, wake
        self._has_ended = False
        self._turn = threading.Lock()
        self._looked: Counter[WatchedOp] = Counter()  # how many ops those that were looked at stand for, since awake
        self._looks = 0
        self._awake_since = time.monotonic()
        self._first_tensor = self._last_tensor = 0  # TensorFlow's numbers, where looking in samples began and ended
        self._lines = lines
        self._ops: dict[tuple[str, str, str], WatchedOp | None] = {}
        self._quiet = 0
        self._skips = 0

    @property
    def is_skipping(self) -> bool:
        """Return whether the next op is not looked at."""
        return self._skips > 0 or self.is_resting

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
            self._quiet = self._looks = 0
            return True
        self._count(self._ops[key], 1 + self._choose_skips())
        return False

    def _count(self, known: WatchedOp | None, stands_for: int) -> None:
        """Count an op for all that it stands for; None is one that TensorFlow did not run as called."""
        if known is not None:
            known.times += stands_for
        if stands_for > 1:
            self._looks += 1
            if known is not None:
                self._looked[known] += stands_for
            if self._looks >= _LOOKS:
                self._begin_rest()

    def begin(self, op: str, scope: str, inputs: Any, attrs: Any) -> WatchedOp | None:
        """Note an op that is new, and came by the slow path."""
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

    def finish(self) -> None:
        """Count what ran without being looked at, at the end."""
        self._has_ended = True
        self.end_rest()

    def end_rest(self) -> None:
        """Observe ops again; what ran meanwhile is taken to be as it was before."""
        with self._turn:
            if not self.is_resting:
                return
            self.is_resting = False
        share = (ops.uid() - self._last_tensor) / max(self._last_tensor - self._first_tensor, 1)
        for each, count in self._looked.items():
            each.times += round(count * share)
        self._begin_samples()
        self._wake()

    def _begin_samples(self) -> None:
        self._looked.clear()
        self._looks = 0
        self._awake_since, self._first_tensor = time.monotonic(), ops.uid()

    def _begin_rest(self) -> None:
        self._last_tensor = ops.uid()
        self.is_resting = True
        self._rest()
        seconds = min(max(10 * (time.monotonic() - self._awake_since), _SHORTEST), _LONGEST)
        _thread.start_new_thread(self._end_rest_after, (seconds,))  # no program waits for it that lists its threads

    def _end_rest_after(self, seconds: float) -> None:
        time.sleep(seconds)
        if not self._has_ended:
            self.end_rest()

    def _choose_skips(self) -> int:
        """Return how many of the next ops are not looked at."""
        self._quiet += 1
        if self._quiet < _EACH:
            return 0
        if self._quiet == _EACH:
            self._begin_samples()
        self.is_sampled = True
        self._skips = _SKIPPED + self._quiet % 7
        return self._skips


def _describe(tensor: Any) -> Input:
    dtype = tensor._datatype_enum()
    if dtype == tf.resource.as_datatype_enum:
        return dtype, resource_device(tensor), False
    where = tensor.backing_device
    return dtype, where or find_host(), eager_device.is_small(tensor, dtype)

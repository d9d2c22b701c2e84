"""One stretch of the user's own program that is watched: what ran, and what there is to compare with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from simplace.oracle.child import kernel_types
from simplace.oracle.child.own_work import INSIDE, is_inside
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tensors import is_on_custom_device
from simplace.oracle.child.tf_private import context, ops
from simplace.oracle.live import entry_points
from simplace.oracle.live.ran_graph import FunctionReader
from simplace.oracle.live.watched_calls import WatchedCall, WatchedCalls
from simplace.oracle.live.watched_ops import WatchedOp, WatchedOps
from simplace.oracle.live.watched_sessions import WatchedSession, WatchedSessions
from simplace.program.watched import RanOps, Watched, choose_named

_SAMPLED = "Eager ops were sampled: how often each ran is an estimate, and rare ones may be missing."
_ASYNC = "What ran asynchronously is not counted."
_CUSTOM = "What ran on a custom device, such as DTensor's, is not counted."


class WatchedRun:
    """Watch all threads of the process between `begin` and `end`."""

    def __init__(self, script: str) -> None:
        self.failure: Exception | None = None
        self.lines = SourceLines(script)
        self._calls = WatchedCalls()
        self._ops = WatchedOps(
            self.lines, partial(entry_points.rest_watcher, self), partial(entry_points.wake_watcher, self)
        )
        self._plain: set[str] = set()  # the names that are of ops
        self._sessions = WatchedSessions()
        self._is_async = False
        self._has_custom_device = False

    def begin(self) -> None:
        """Observe what runs from now on."""
        entry_points.add_watcher(self)

    def end(self) -> None:
        """Stop observing."""
        self._ops.finish()
        entry_points.remove_watcher(self)

    def wants_slow_path(self, op: str) -> bool:
        """Return whether an op is to take TensorFlow's slow path, where its inputs and attributes are known."""
        return self._ops.wants_slow_path(op)

    def begin_call(self, op: str, device: str, inputs: Any, attrs: Any, outputs: int) -> Any:
        """Observe an op or a function before it runs, if it is new; return what `end_call` needs."""
        is_known = self._ops.is_skipping if op in self._plain else self._calls.count_repeated(op, device, inputs)
        if is_known or is_inside():
            return None
        if context.context().is_async():
            self._is_async = True
            return None
        if not all(isinstance(tensor, ops.EagerTensor) for tensor in inputs):
            return None  # a tensor of a graph, which TensorFlow refuses
        with INSIDE:
            if is_on_custom_device(device, inputs):
                self._has_custom_device = True
                return None
            if op.startswith("__") or kernel_types.find_op_def(op) is None:
                return self._calls.begin(op, device, inputs, attrs, outputs)
            self._plain.add(op)
            return self._ops.begin(op, device, inputs, attrs)

    def end_call(self, token: Any, results: Any, error: BaseException | None) -> None:
        """Observe the outcome of an op or a function that is new."""
        with INSIDE:
            if isinstance(token, WatchedOp):
                self._ops.end(token, results, error)
            else:
                self._calls.end(token, results, error)

    def begin_session(self, *run: Any) -> Any:
        """Count a run of a session; return its kind if TensorFlow is to tell its graphs."""
        if is_inside():
            return None
        with INSIDE:
            return self._sessions.begin(*run)

    def end_session(self, kind: WatchedSession, metadata: Any) -> None:
        """Keep the graphs of a run of a session."""
        self._sessions.end(kind, metadata)

    def note_scope(self, graph: Any) -> None:
        """Keep the user's line of the device scope that a graph has just entered."""
        self.lines.mark_scope(graph)

    def fail(self, error: Exception) -> None:
        """Keep an error of simplace's own, to be reported at the end."""
        self.failure = error

    def summarize(self) -> Watched:
        """Return what TensorFlow has run, by its own graphs."""
        eager = tuple(RanOps(each.op, each.device, each.at) for each in self.list_ops() if each.device)
        readers = [FunctionReader(call, self.lines) for call in self.calls]
        readers += [FunctionReader(kind, self.lines) for kind in self.sessions]
        counts = sum((reader.count_ops() for reader in readers), Counter(each.device for each in eager))
        named = choose_named(counts)
        return Watched(tuple(reader.describe(named) for reader in readers), eager, self.list_remarks())

    @property
    def calls(self) -> list[WatchedCall]:
        """Return the calls of functions that TensorFlow placed anew."""
        return self._calls.calls

    @property
    def sessions(self) -> list[WatchedSession]:
        """Return the kinds of runs of sessions whose graphs TensorFlow has told."""
        return self._sessions.list_seen()

    @property
    def has_seen_ops(self) -> bool:
        """Return whether TensorFlow has run a function, an op or a session."""
        return bool(self.calls or self.list_ops() or self.sessions)

    def list_ops(self) -> list[WatchedOp]:
        """Return the eager ops that were seen, in the order in which the first ran."""
        return self._ops.list_ops()

    def list_remarks(self) -> tuple[str, ...]:
        """Return sentences on what was not seen."""
        return tuple(self._remarks())

    def _remarks(self) -> Iterator[str]:
        yield from self._calls.remarks
        if self._ops.is_sampled:
            yield _SAMPLED
        if self._is_async:
            yield _ASYNC
        if self._has_custom_device:
            yield _CUSTOM
        if self._sessions.unseen:
            yield f"Runs of sessions with options of their own ({self._sessions.unseen}) are not counted."

"""One stretch of the user's own program that is watched: what ran, and what there is to compare with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from simplace.graph import graph_def
from simplace.graph.dtypes import DataType
from simplace.graph.function_names import shown_name
from simplace.oracle.child import capture, kernel_types
from simplace.oracle.child.eager_log import choose_attrs
from simplace.oracle.child.functions import make_compiled_call, note_function
from simplace.oracle.child.own_work import INSIDE, is_inside
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tf_private import context
from simplace.oracle.eager_attrs import read_attrs
from simplace.oracle.live import entry_points
from simplace.oracle.live.ran_graph import FunctionReader
from simplace.oracle.live.watched_calls import WatchedCall, WatchedCalls, ask_for_all
from simplace.oracle.live.watched_ops import WatchedOp, WatchedOps
from simplace.program.eager_op import EagerInput, EagerOp
from simplace.program.observation import (
    LoggedNode,
    Observation,
    ObservedDevice,
    ObservedEagerOp,
    ObservedProgram,
)
from simplace.program.program import NodeNotes, Program, Resource
from simplace.program.watched import RanOps, Watched, choose_named

_SAMPLED = "Eager ops were soon looked at in samples: how often each ran is an estimate, and rare ones may lack."
_ASYNC = "What ran asynchronously is not counted."


class WatchedRun:
    """Watch all threads of the process between `begin` and `end`."""

    def __init__(self, script: str) -> None:
        self.failure: Exception | None = None
        self._lines = SourceLines(script)
        self._calls = WatchedCalls()
        self._ops = WatchedOps(
            self._lines, partial(entry_points.rest_watcher, self), partial(entry_points.wake_watcher, self)
        )
        self._plain: set[str] = set()  # the names that are of ops
        self._sessions = 0
        self._is_async = False

    def begin(self) -> None:
        """Look at what runs from now on."""
        entry_points.add_watcher(self)

    def end(self) -> None:
        """Look at nothing any more."""
        self._ops.finish()
        entry_points.remove_watcher(self)

    def wants_slow_path(self, op: str) -> bool:
        """Return whether an op is to take TensorFlow's slow path, where its inputs and attributes are known."""
        return self._ops.wants_slow_path(op)

    def begin_call(self, op: str, device: str, inputs: Any, attrs: Any, outputs: int) -> Any:
        """Look at an op or a function before it runs, if it is new; return what `end_call` needs."""
        if self._ops.is_resting and op in self._plain:
            return None
        if is_inside():
            return None
        if context.context().is_async():
            self._is_async = True
            return None
        with INSIDE:
            if op.startswith("__") or kernel_types.find_op_def(op) is None:
                return self._calls.begin(op, device, inputs, attrs, outputs)
            self._plain.add(op)
            return self._ops.begin(op, device, inputs, attrs)

    def end_call(self, token: Any, results: Any, error: BaseException | None) -> None:
        """Look at what became of an op or a function that is new."""
        with INSIDE:
            if isinstance(token, WatchedOp):
                self._ops.end(token, results, error)
            else:
                self._calls.end(token, results, error)

    def note_session(self) -> None:
        """Count a run of a session."""
        self._sessions += 1

    def note_scope(self, graph: Any) -> None:
        """Keep the user's line of the device scope that a graph has just entered."""
        self._lines.mark_scope(graph)

    def fail(self, error: Exception) -> None:
        """Keep an error of simplace's own, to be told at the end."""
        self.failure = error

    def summarize(self) -> Watched:
        """Return what TensorFlow has run, by its own graphs."""
        eager = tuple(RanOps(each.op, each.device, each.at) for each in self._ops.list_ops() if each.device)
        readers = [FunctionReader(call, self._lines) for call in self._calls.calls]
        counts = sum((reader.count_ops() for reader in readers), Counter(each.device for each in eager))
        named = choose_named(counts)
        return Watched(tuple(reader.describe(named) for reader in readers), eager, tuple(self._remarks()))

    def observe(self, directory: Path) -> Observation:
        """Return what was seen as of a run that was observed; `directory` takes the table of the installed kernels.

        TensorFlow is asked, now, where it places the nodes that Grappler removes before a function runs.
        """
        registry = directory / "kernels.zip"
        with INSIDE:
            ask_for_all(self._calls.calls)
            capture.write_kernel_table(registry)
            return Observation(
                tf.version.VERSION,
                tuple(_describe_device(name) for name in context.context().devices()),
                tuple(self._observe_call(call) for call in self._calls.calls),
                tuple(self._remarks()),
                str(registry),
                eager=tuple(_observe_op(each) for each in self._ops.list_ops()),
            )

    def _remarks(self) -> Iterator[str]:
        yield from self._calls.remarks
        if self._ops.is_sampled:
            yield _SAMPLED
        if self._is_async:
            yield _ASYNC
        if self._sessions:
            yield f"Runs of sessions ({self._sessions}) are not counted; simplace show looks at them."

    def _observe_call(self, call: WatchedCall) -> ObservedProgram:
        graph = tf.compat.v1.GraphDef()
        graph.versions.producer = tf.version.GRAPH_DEF_VERSION
        graph.library.function.extend(call.library)
        name = shown_name(call.name)
        log: list[LoggedNode] = []
        if call.is_compiled:
            node = make_compiled_call(call.name, name)
            graph.node.append(node)
            log = [LoggedNode(node.name, node.op, call.home)] if call.home else []
        graphs = call.copied or call.graphs
        if graphs is not None:
            log = [LoggedNode(node.name, node.op, node.device) for node in graphs.post_optimization_graph.node]
        program = Program(
            name,
            "compiled" if call.is_compiled else "function",
            graph_def.parse_graph_def(graph.SerializeToString(), is_ours=True),
            None if call.is_compiled else call.name,
            () if call.is_compiled else call.arg_devices,
            call.scope,
            call.soft_placement,
            {each.signature.name: self._notes(call, each) for each in call.library},
            resources={number: Resource(*found) for number, *found in call.resources},
            datasets=frozenset(call.datasets),
        )
        is_asked = bool(log) or call.refused is not None
        return ObservedProgram(program, tuple(log), call.refused, is_asked=is_asked, is_rewritten=True)

    def _notes(self, call: WatchedCall, definition: Any) -> dict[str, NodeNotes]:
        graph = call.traced.get(definition.signature.name)
        found = {} if graph is None else note_function(definition, graph, self._lines)
        return {
            name: NodeNotes(at, device_at, tuple(None if dims is None else tuple(dims) for dims in shapes), *more)
            for name, (at, device_at, shapes, *more) in found.items()
        }


def _observe_op(each: WatchedOp) -> ObservedEagerOp:
    inputs = tuple(EagerInput(DataType(dtype), where, small) for dtype, where, small in each.inputs)
    op = EagerOp(
        each.op, each.at, each.scope, each.soft_placement, read_attrs(choose_attrs(each.op, each.attrs)), inputs
    )
    return ObservedEagerOp(op, device=each.device, times=each.times)


def _describe_device(name: str) -> ObservedDevice:
    return ObservedDevice(name, name.rsplit(":", 2)[-2])

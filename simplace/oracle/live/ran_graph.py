"""What TensorFlow runs of a function: the ops of its optimized graph by device and line, and the copies it sends."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator
from typing import Any

import tensorflow as tf

from simplace.graph.function_names import shown_name
from simplace.graph.op_kinds import (
    CONTROL_FLOW,
    IDENTITIES,
    LOOP_COND,
    MUST_COMPILE,
    is_arg,
    is_constant,
    is_retval,
    is_send,
)
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.live.watched_calls import WatchedCall
from simplace.oracle.live.watched_sessions import WatchedSession
from simplace.program.watched import RanCopy, RanFunction, RanOps

_FORWARDING = CONTROL_FLOW | IDENTITIES
_PLUMBING = _FORWARDING | {LOOP_COND, "IdentityN", "NoOp"}  # they only hand on tensors, or an order
_ORDER = "/ctrl/_"  # in the name of what is sent for the sake of order alone (AddDummyConst of graph_partition.cc)


class FunctionReader:
    """Reader of the graphs of one function or kind of session run, which finds the ops that the program traced.

    To find an op's line takes as long as all else that is done for it, so that only few get theirs.
    """

    def __init__(self, call: WatchedCall | WatchedSession, lines: SourceLines) -> None:
        self._watched = call
        self._lines = lines
        graphs = call.graphs or call.copied
        self._nodes = {} if graphs is None else {node.name: node for node in graphs.post_optimization_graph.node}
        self._parts = () if graphs is None else graphs.partition_graphs
        self._bodies = {each.signature.name: each for each in call.library}

    def describe(self, named: Container[str]) -> RanFunction:
        """Return the function's ops and copies, as far as TensorFlow has logged them; `named` are devices."""
        name, times = shown_name(self._watched.name), self._watched.times
        return RanFunction(name, times, tuple(self._ops(named)), tuple(self._copies()))

    def count_ops(self) -> Counter[str]:
        """Count the ops by device."""
        counts: Counter[str] = Counter()
        for each in self._ops(()):
            counts[each.device] += each.count
        return counts

    def _compiled_ops(self) -> Iterator[RanOps]:
        if self._watched.home:
            count = sum(_works(node) for each in self._watched.library for node in each.node_def)
            yield RanOps("XlaLaunch", self._watched.home, "", count)

    def _ops(self, named: Container[str]) -> Iterator[RanOps]:
        return self._compiled_ops() if self._watched.is_compiled else self._placed_ops(named)

    def _placed_ops(self, named: Container[str]) -> Iterator[RanOps]:
        """Yield the ops that compute something, those of one line on one device together."""
        counts: Counter[tuple[str, str, str]] = Counter()
        for node in filter(_works, self._nodes.values()):
            is_compiled = MUST_COMPILE in node.attr and node.attr[MUST_COMPILE].b
            at = self._line(node) if node.device in named else ""
            counts[node.op, node.device, at] += self._count_compiled(node) if is_compiled else 1
        for (op, device, at), count in counts.items():
            yield RanOps(op, device, at, count)

    def _copies(self) -> Iterator[RanCopy]:
        """Yield what is sent from one device to another, but for what only keeps an order."""
        for node in (node for part in self._parts for node in part.node if is_send(node.op)):
            source, target = (node.attr[name].s.decode() for name in ("send_device", "recv_device"))
            tensor = node.input[0]
            if source != target and _ORDER not in tensor:
                yield RanCopy(tensor, source, target, self._size(tensor, node.attr["T"].type))

    def _count_compiled(self, node: Any) -> int:
        body = self._bodies.get(node.attr["f"].func.name)
        return 1 if body is None else sum(map(_works, body.node_def))

    def _line(self, node: Any) -> str:
        op = self._traced_op(node)
        return "" if op is None else self._lines.of_op(op)

    def _traced_op(self, node: Any) -> Any:
        """Return the op that was traced, also of a node of a function that was inlined; None for TensorFlow's own."""
        debug = node.experimental_debug_info
        is_inlined = bool(debug.original_func_names)
        function = debug.original_func_names[-1] if is_inlined else self._watched.name
        graph = self._watched.traced.get(function)
        if graph is None:
            return None
        try:
            return graph.get_operation_by_name(debug.original_node_names[-1] if is_inlined else node.name)
        except KeyError:
            return None

    def _size(self, tensor: str, dtype: int) -> int | None:
        """Return the bytes of a tensor; that of a node which only hands on is what it is given.

        The switches that TensorFlow adds to inputs of a branch name the op that uses them as the one they come from.
        """
        for _ in range(len(self._nodes)):
            name, _, slot = tensor.partition(":")
            node = self._nodes.get(name)
            if node is None:
                return None
            if node.op in _FORWARDING:
                tensor = node.input[0]
                continue
            op = self._traced_op(node)
            if is_arg(node.op):
                return _bytes_of(self._shape_of_argument(node.attr["index"].i, op), dtype)
            return None if op is None else _bytes_of(op.outputs[int(slot or 0)].shape, dtype)
        return None

    def _shape_of_argument(self, index: int, op: Any) -> Any:
        """Return the shape of the argument that came with the first call."""
        given = self._watched.shapes[index]
        return op.outputs[0].shape if given is None and op is not None else given


def _works(node: Any) -> bool:
    """Return whether a node computes something."""
    return not (node.op in _PLUMBING or is_arg(node.op) or is_retval(node.op) or is_constant(node.op))


def _bytes_of(shape: Any, dtype: int) -> int | None:
    size = tf.as_dtype(dtype).size
    if shape is None or not shape.is_fully_defined() or not size:
        return None
    return int(math.prod(shape.as_list()) * size)

"""The graphs that TensorFlow collects of the functions it instantiates: as traced, as optimized, one per device.

TensorFlow collects while EagerContext::ShouldStoreGraphs, and hands over what it has collected when an op or function
has run (CollectGraphs of common_runtime/eager/execute.cc). All threads share one collector.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from simplace.graph.op_kinds import is_retval
from simplace.oracle.child.tf_private import context, summary_ops
from simplace.oracle.live.entry_points import execute

_HOST = "/device:CPU:0"
_TURN = threading.Lock()
_windows = 0
_found: list[Any] = []  # what was collected since the first of the open windows was opened


@dataclass(slots=True)
class Window:
    """Record of the time in which graphs are collected for a function; `graphs` are those of the function, if any."""

    definition: Any
    graphs: Any = field(default=None)


def is_in_use() -> bool:
    """Return whether the program has TensorFlow collect graphs for itself."""
    return summary_ops._current_trace_context is not None


@contextmanager
def collecting_graphs(definition: Any) -> Iterator[Window]:
    """Collect the graphs of a function that is instantiated inside of this context, if it is."""
    window = open_window(definition)
    try:
        yield window
    finally:
        close_window(window)


def open_window(definition: Any) -> Window:
    """Begin to collect graphs."""
    global _windows
    with _TURN:
        if not _windows:
            _hand_over()  # its own graph is none of those that are wanted
            context.context().enable_graph_collection()
        _windows += 1
    return Window(definition)


def close_window(window: Window) -> None:
    """End what `open_window` began, and find the graphs of the function."""
    global _windows
    with _TURN:
        _hand_over()  # what fails is not handed over by itself
        metadata = context.context().export_run_metadata()
        _found.extend(metadata.function_graphs if metadata is not None else ())
        window.graphs = next((each for each in _found if _are_of(window.definition, each)), None)
        _windows -= 1
        if not _windows:
            context.context().disable_graph_collection()
            _found.clear()


def _hand_over() -> None:
    """Run an op that does nothing, after which TensorFlow returns what it has collected."""
    execute(context.context()._handle, _HOST, "NoOp", [], (), 0)


def _are_of(definition: Any, graphs: Any) -> bool:
    """Return whether graphs are those of a function, whose name they do not tell, and which was placed."""
    signature = definition.signature
    expected = {arg.name for arg in signature.input_arg} | {node.name for node in definition.node_def}
    nodes = graphs.pre_optimization_graph.node
    if not graphs.post_optimization_graph.node:
        return False
    if len(nodes) != len(expected) + len(signature.output_arg):
        return False
    return expected == {node.name for node in nodes if not is_retval(node.op)}

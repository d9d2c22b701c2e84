"""Runs of sessions that are watched: TensorFlow hands out the graphs of the first run of each kind."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from simplace.graph.op_kinds import RECVS, SENDS
from simplace.oracle.child.session_datasets import tensor_name
from simplace.oracle.child.tf_private import config_pb2, pywrap_tf_session

_NAME = "Session.run"
_OF_ONEDNN = "_Mkl"
_Key = tuple[int, tuple[str, ...], tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class RanGraphs:
    """The graphs of a run by the names that TensorFlow has for those of functions: whole, and one for each device."""

    post_optimization_graph: Any
    partition_graphs: tuple[Any, ...]


@dataclass(eq=False, slots=True)
class WatchedSession:
    """Record of the runs of one session that feed, fetch and run the same; `shapes` are those of the first feeds.

    It has what is read of a call of a function (`simplace.oracle.live.ran_graph.FunctionReader`). `version` is that of
    the Python graph at the first run.
    """

    session: Any
    traced: dict[str, Any]
    shapes: tuple[Any, ...]
    version: int
    devices: tuple[str, ...]
    name: str = _NAME
    times: int = 0
    graphs: RanGraphs | None = None
    copied: None = None
    library: tuple[Any, ...] = ()
    home: str = ""
    is_compiled: bool = field(default=False, init=False)

    @property
    def graph(self) -> Any:
        """Return the graph that the program built."""
        return self.traced[self.name]

    def list_placed(self) -> Iterator[Any]:
        """Yield the nodes as they ran, each with its device."""
        yield from () if self.graphs is None else self.graphs.post_optimization_graph.node


class WatchedSessions:
    """Count the runs of sessions by their kinds, of which the first that succeeds tells its graphs."""

    def __init__(self) -> None:
        self.unseen = 0
        self._kinds: dict[_Key, WatchedSession] = {}
        self._turn = threading.Lock()

    def begin(self, session: Any, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any) -> Any:
        """Count a run; return its kind if that is new and TensorFlow can be asked for the graphs, None otherwise.

        A run that has options of its own, or whose graphs another process has, is counted as not seen.
        """
        key = (
            id(session),
            tuple(map(tensor_name, feeds)),
            tuple(map(tensor_name, fetches)),
            tuple(map(pywrap_tf_session.TF_OperationName, targets)),
        )
        with self._turn:
            known = self._kinds.get(key)
            if known is not None and known.graphs is not None:
                known.times += 1
                return None
            if options is not None or metadata is not None or not _hands_out_graphs(session):
                self.unseen += 1
                return None
            if known is None:
                known = self._kinds[key] = _describe_session(session, feeds.values())
            return known

    def end(self, kind: WatchedSession, metadata: Any) -> None:
        """Keep the graphs of a run that has succeeded."""
        parts = tuple(metadata.partition_graphs)
        whole = tf.compat.v1.GraphDef()
        for part in parts:
            whole.node.extend(_call_as_written(node, kind.graph) for node in part.node if node.op not in SENDS | RECVS)
        kind.library = tuple(function for part in parts[:1] for function in part.library.function)
        with self._turn:
            kind.graphs = RanGraphs(whole, parts)
            kind.times += 1

    def list_seen(self) -> list[WatchedSession]:
        """Return the kinds of runs whose graphs are known, in the order of the first run."""
        return [kind for kind in self._kinds.values() if kind.graphs is not None]


def run_and_tell(call: Any, session: Any, feeds: Any, fetches: Any, targets: Any) -> tuple[Any, Any]:
    """Run a session as it would; return the results, and the metadata with the graphs."""
    asked = config_pb2.RunOptions(output_partition_graphs=True)
    options = pywrap_tf_session.TF_NewBufferFromString(asked.SerializeToString())
    metadata = pywrap_tf_session.TF_NewBuffer()
    try:
        results = call(session, options, feeds, fetches, targets, metadata)
        told = config_pb2.RunMetadata.FromString(pywrap_tf_session.TF_GetBuffer(metadata))
    finally:
        pywrap_tf_session.TF_DeleteBuffer(options)
        pywrap_tf_session.TF_DeleteBuffer(metadata)
    return results, told


def _call_as_written(node: Any, graph: Any) -> Any:
    """Return a node with the op that the program has in the place of one of oneDNN (mkl_layout_pass.cc)."""
    if node.op.startswith(_OF_ONEDNN):
        with suppress(KeyError):
            node.op = graph.get_operation_by_name(node.name).type
    return node


def _hands_out_graphs(session: Any) -> bool:
    is_refused = session._config is not None and session._config.experimental.disable_output_partition_graphs
    return not session._target and not is_refused


def _describe_session(session: Any, given: Iterable[Any]) -> WatchedSession:
    shapes = tuple(tf.TensorShape(np.shape(value)) for value in given)
    devices = tuple(device.name for device in session.list_devices())
    return WatchedSession(session, {_NAME: session.graph}, shapes, session.graph.version, devices)

"""What was watched, as an `Observation` such as a run in a child process gives; imported when it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from simplace.graph import graph_def
from simplace.graph.dtypes import DataType
from simplace.graph.function_names import shown_name
from simplace.oracle.child import capture
from simplace.oracle.child.eager_log import choose_attrs
from simplace.oracle.child.functions import make_compiled_call, note_function, note_graph
from simplace.oracle.child.own_work import INSIDE
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tf_private import context
from simplace.oracle.eager_attrs import read_attrs
from simplace.oracle.live.watched_calls import WatchedCall, ask_for_all
from simplace.oracle.live.watched_ops import WatchedOp
from simplace.oracle.live.watched_run import WatchedRun
from simplace.oracle.live.watched_sessions import WatchedSession
from simplace.program.eager_op import EagerInput, EagerOp
from simplace.program.observation import LoggedNode, Observation, ObservedDevice, ObservedEagerOp, ObservedProgram
from simplace.program.program import NodeNotes, Program, read_resources


def observe_watched(run: WatchedRun, directory: Path) -> Observation:
    """Return what was seen as of a run that was observed; `directory` takes the table of the installed kernels.

    TensorFlow is asked, now, where it places the nodes that Grappler removes before a function runs.
    """
    registry = directory / "kernels.zip"
    with INSIDE:
        ask_for_all(run.calls)
        capture.write_kernel_table(registry)
        return Observation(
            tf.version.VERSION,
            tuple(_describe_device(name) for name in _list_devices(run)),
            (*(_observe_call(call, run.lines) for call in run.calls), *_observe_sessions(run)),
            run.list_remarks(),
            str(registry),
            eager=tuple(_observe_op(each) for each in run.list_ops()),
        )


def _observe_call(call: WatchedCall, lines: SourceLines) -> ObservedProgram:
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
        {each.signature.name: _note_nodes(call, each, lines) for each in call.library},
        resources=read_resources(call.resources),
        datasets=frozenset(call.datasets),
    )
    is_asked = bool(log) or call.refused is not None
    return ObservedProgram(program, tuple(log), call.refused, is_asked=is_asked, is_rewritten=True)


def _list_devices(run: WatchedRun) -> Sequence[str]:
    """Return the names of the devices: those of a session where nothing ran eagerly, so that TensorFlow makes none."""
    if run.calls or run.list_ops() or not run.sessions:
        return list(context.context().devices())
    return run.sessions[0].devices


def _observe_sessions(run: WatchedRun) -> Iterator[ObservedProgram]:
    """Yield each session as a program with all nodes that its runs had."""
    by_session: dict[int, list[WatchedSession]] = {}
    for kind in run.sessions:
        by_session.setdefault(id(kind.session), []).append(kind)
    yield from (_observe_session(kinds, run.lines) for kinds in by_session.values())


def _observe_session(kinds: Sequence[WatchedSession], lines: SourceLines) -> ObservedProgram:
    first, graph = kinds[0], kinds[0].graph
    options = first.session._config
    notes = {
        name: NodeNotes(at, device_at, tuple(None if dims is None else tuple(dims) for dims in shapes), *more)
        for name, (at, device_at, shapes, *more) in note_graph(graph, lines).items()
    }
    soft = options is not None and options.allow_soft_placement
    content = graph.as_graph_def().SerializeToString()
    program = Program(
        first.name,
        "session",
        graph_def.parse_graph_def(content, is_ours=True),
        soft_placement=soft,
        notes={"": notes},
    )
    found = {node.name: LoggedNode(node.name, node.op, node.device) for kind in kinds for node in kind.list_placed()}
    # What was added to the graph since then, or is placed run by run, TensorFlow may have placed otherwise.
    is_whole = all(kind.version == graph.version for kind in kinds)
    is_pruned = options is not None and options.graph_options.place_pruned_graph
    return ObservedProgram(program, tuple(found.values()), None, is_asked=is_whole and not is_pruned, is_rewritten=True)


def _note_nodes(call: WatchedCall, definition: Any, lines: SourceLines) -> dict[str, NodeNotes]:
    graph = call.traced.get(definition.signature.name)
    found = {} if graph is None else note_function(definition, graph, lines)
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

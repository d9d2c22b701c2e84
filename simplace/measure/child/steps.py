"""Traced and untraced steps of a graph, for several thread settings in one process, one setting after the other.

Pools a session make that possible: TensorFlow's own pools belong to the whole process. Steps of two settings do not
take turns: each would find the caches, and the memory for its trace, as the steps of another graph left them.

What an op costs moves an average that tells the expensive ones from the cheap ones, and so the order of later steps.
Which ones are expensive is asked before each step. Steps of a second kind are run while these averages hold still; they
take longer, and only their order counts.

A step of a graph that ran before, as those of a training loop do, finds its data in the caches, and the memory that its
trace needs; after something else it does not, and a small node that is new in the step takes twice as long. So where a
gauge is wanted, each step that counts comes after some more of the same graph.

A machine is not always equally fast: other programs, and other machines on the same host, share its caches and cores.
A gauge tells how fast it is just before and just after a step: a small graph on one thread, whose bookkeeping counts;
`paces` tells from all these how fast it was during each step. Two cores may at times be the two halves of one, which a
virtual machine does not say. So before and after a step on several threads another gauge tells how much slower
bookkeeping becomes while a second thread works.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import tensorflow as tf

from simplace.costs.calibration import measure_sharing
from simplace.graph.op_kinds import is_placeholder
from simplace.measure.child import averages
from simplace.measure.child.paces import find_paces
from simplace.measure.child.runnable import Runnable
from simplace.oracle.child.tf_private import rewriter_config_pb2

v1 = tf.compat.v1
_THREADS, _POOL = Path("/proc/self/task"), "tf_Compute"
_TRIES = 10
_BEFORE = 2  # steps with tracing, each with one without after it, before one that counts
_LONGEST_INLINE = 15  # bytes that std::string keeps without memory of its own (GNU's libstdc++)


class _NodeTime(NamedTuple):
    """Record of when a node held its thread, in nanoseconds."""

    name: str
    start: int
    end: int


class _Graph(NamedTuple):
    """Record of a graph with the ops to run; `assigned` are those that give its variables their values."""

    graph: Any
    targets: list[Any]
    assigned: list[tuple[Any, Any, Any]]


def run_steps(
    runnable: Runnable,
    settings: list[tuple[int, int]],
    cpus: int,
    warm_up: int,
    steps: int,
    gauges: Sequence[Runnable] = (),
    held: int = 0,
) -> tuple[list[dict[str, list[Any]]], list[str]]:
    """Return for each setting its traced steps, and the names of the nodes that the steps were run for.

    "steps" and `held` more, under "held", are those of either kind. A step has nodes with times, how disturbed it was,
    and with gauges, for one thread and for two, its pace: the median time between two nodes of the first gauge, in
    nanoseconds. On several threads it has what sharing costs before and after it, too, as the second gauge tells. With
    `held` it has the names of expensive nodes. A held step has its nodes and these names only. "edge_order" has the
    nodes of another step by start, [] without held ones.
    """
    made, of_gauges = _make_graph(runnable), [_make_graph(gauge) for gauge in gauges]
    found = []
    for setting in settings:
        with ExitStack() as stack:
            session = _open_session(stack, made, setting, cpus, warm_up)
            own_gauges = of_gauges[:1] if setting[0] in (1, -1) else of_gauges
            opened = [
                (_open_session(stack, gauge, (size, 1), 1, warm_up), gauge.targets)
                for size, gauge in enumerate(own_gauges, start=1)
            ]
            found.append(_run_setting(session, made.targets, setting[0], steps, opened, held))
    return found, [op.name for op in made.targets]


def _run_setting(
    session: Any, targets: list[Any], inter_op: int, steps: int, gauges: list[tuple[Any, list[Any]]], held: int
) -> dict[str, list[Any]]:
    own: dict[str, list[Any]] = {"steps": [], "held": [], "edge_order": []}
    for _ in range(steps):
        # Traces are read after all has run: reading takes long, and the machine may change meanwhile.
        expensive = _list_expensive_nodes(session, targets, inter_op) if held else []
        before = [_run_traced(*one, 1) for one in gauges]
        for _ in range(_BEFORE if gauges else 0):
            _run_traced(session, targets, inter_op)
            _run_untraced(session, targets, inter_op)
        step, metadata = _trace_step(session, targets, inter_op)
        after = [_run_traced(*one, 1) for one in gauges]
        gauged = _read_gauges(list(zip(before, after, strict=True)))
        own["steps"].append({**step, "events": _list_events(metadata), **gauged, "expensive": expensive})
    if gauges:
        _add_paces(own["steps"])
    if held:
        own["held"] = _trace_held_steps(session, targets, inter_op, held)
        own["edge_order"] = _trace_edge_order(session, targets)
    return own


def _list_expensive_nodes(session: Any, targets: list[Any], inter_op: int) -> list[str]:
    """List the nodes that are expensive now, handles too: their kernels run in traced steps only."""
    return averages.list_expensive_nodes(partial(_run_traced, session, targets, inter_op))


def _trace_held_steps(session: Any, targets: list[Any], inter_op: int, steps: int) -> list[dict[str, list[Any]]]:
    """Trace steps while the averages are frozen.

    An op may become expensive within the step that lists the expensive ops: the list before the held steps may lack
    it, the one after them has it. Where both agree, the list is right.
    """
    for _ in range(_TRIES):
        before = _list_expensive_nodes(session, targets, inter_op)
        with averages.hold_averages():
            seen = [_run_traced(session, targets, inter_op) for _ in range(steps)]
        if _list_expensive_nodes(session, targets, inter_op) == before:
            break
    return [{"events": _list_events(metadata), "expensive": before} for metadata in seen]


def _trace_edge_order(session: Any, targets: list[Any]) -> list[str]:
    """Return the nodes by start in a step that the caller's thread runs alone, one after another as they get ready.

    How many threads run a step is no part of the key of a session's executors (`DirectSession::GetOrCreateExecutors`
    of tensorflow/core/common_runtime/direct_session.cc): the graph is the same, with the same addresses.
    """
    return [event[0] for event in _list_events(_run_traced(session, targets, -1))]


def _make_graph(runnable: Runnable) -> _Graph:
    graph = tf.Graph()
    with graph.as_default():
        tf.graph_util.import_graph_def(runnable.definition, name="")
        assigned = list(_make_assignments(runnable.variables))
    return _Graph(graph, [op for op in graph.get_operations() if _is_last(op, assigned)], assigned)


def _open_session(stack: ExitStack, made: _Graph, setting: tuple[int, int], cpus: int, warm_up: int) -> Any:
    """Open a session, and run warm-up steps."""
    before = _own_threads()
    session = stack.enter_context(v1.Session(graph=made.graph, config=_make_config(setting, cpus)))
    _keep_apart(_own_threads() - before)
    for assign, place, value in made.assigned:
        session.run(assign, {place: value})
    for _ in range(warm_up):
        session.run(made.targets)
    return session


def _own_threads() -> set[int]:
    """Return the threads of this process; none where the system does not list them."""
    return {int(thread) for thread in os.listdir(_THREADS)} if _THREADS.is_dir() else set()


def _read_thread_file(thread: int, file: str) -> str:
    """Return a file of the system on a thread; "" where it has ended, or the system keeps no such file."""
    try:
        return (_THREADS / str(thread) / file).read_text()
    except OSError:
        return ""


def _keep_apart(threads: set[int]) -> None:
    """Keep each inter-op thread among some new ones on a core of its own, where there are enough cores.

    Else the system may let threads that wake each other take turns on one core, and the other cores idle: then steps
    last as long as it decides.
    """
    cores = sorted(os.sched_getaffinity(0)) if threads else []
    pool = sorted(one for one in threads if _read_thread_file(one, "comm").strip() == _POOL)
    if len(pool) <= len(cores):
        for thread, core in zip(pool, cores, strict=False):
            os.sched_setaffinity(thread, {core})


def _read_gauges(traces: list[tuple[Any, Any]]) -> dict[str, Any]:
    """Return what the steps of the gauges before and after a step tell; `traces` has those of none, one or both."""
    found = [[_list_events(trace) for trace in both] for both in traces]
    paces = [_measure_pace(events) for both in found[:1] for events in both]
    sharing = [measure_sharing([_NodeTime(one[0], one[3], one[4]) for one in e]) for both in found[1:] for e in both]
    pace = geometric_mean(paces) if paces else 0.0
    return {"pace": pace, "sharing": [one for one in sharing if one is not None]}


def _add_paces(steps: list[dict[str, Any]]) -> None:
    """Replace the pace of the gauge beside each step by that of the step."""
    kernels = []
    for step in steps:
        times: dict[str, float] = defaultdict(float)
        for name, start, end, *_ in step["events"]:
            times[name] += end - start
        kernels.append(times)
    for step, pace in zip(steps, find_paces(kernels, [step["pace"] for step in steps]), strict=True):
        step["pace"] = pace


def _measure_pace(events: list[list[Any]]) -> float:
    """Return the median time between two nodes, 1 ns at least: the clock may tell less than that apart."""
    return max(1.0, float(median(after[3] - before[4] for before, after in pairwise(events))))


def _make_config(setting: tuple[int, int], cpus: int) -> Any:
    inter_op, intra_op = setting
    config = v1.ConfigProto(
        inter_op_parallelism_threads=max(0, inter_op),
        intra_op_parallelism_threads=intra_op,
        use_per_session_threads=True,
        device_count={"CPU": cpus},
        allow_soft_placement=True,
    )
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    return config


def _make_assignments(variables: dict[str, Any]) -> Iterator[tuple[Any, Any, Any]]:
    for name, value in variables.items():
        dtype, shape = tf.as_dtype(value.dtype), tf.TensorShape(value.shape)
        place = v1.placeholder(dtype, shape)
        handle = tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=name)
        yield tf.raw_ops.AssignVariableOp(resource=handle, value=place), place, value


def _is_last(op: Any, assigned: list[Any]) -> bool:
    own = {one for assign, place, _ in assigned for one in (assign, place.op)}
    is_used = any(out.consumers() for out in op.outputs) or bool(op._control_outputs)
    return not is_used and op not in own and not is_placeholder(op.type)


def _trace_step(session: Any, targets: list[Any], inter_op: int) -> tuple[dict[str, Any], Any]:
    """Return a traced step, with the wall time of one without tracing, in nanoseconds, and its trace."""
    start = time.perf_counter_ns()
    _run_untraced(session, targets, inter_op)
    plain = time.perf_counter_ns() - start
    before = _sum_core_waits(inter_op)
    metadata = _run_traced(session, targets, inter_op)
    return {"delay": _sum_core_waits(inter_op) - before, "untraced": plain}, metadata


def _run_untraced(session: Any, targets: list[Any], inter_op: int) -> None:
    session.run(targets, options=_make_run_options(inter_op))


def _run_traced(session: Any, targets: list[Any], inter_op: int) -> Any:
    metadata = v1.RunMetadata()
    options = _make_run_options(inter_op, trace_level=v1.RunOptions.SOFTWARE_TRACE)
    session.run(targets, options=options, run_metadata=metadata)
    return metadata


def _make_run_options(inter_op: int, **others: Any) -> Any:
    caller = {"inter_op_thread_pool": -1} if inter_op == -1 else {}
    return v1.RunOptions(**caller, **others)


def _sum_core_waits(inter_op: int) -> int:
    """Return the nanoseconds that this process's threads waited for a core; 0 where the system does not say.

    The caller's own thread does not count where it runs no nodes: it waits until a step is over, and then for a core
    that a thread of the pool still holds.
    """
    threads = _own_threads() - (set() if inter_op == -1 else {threading.get_native_id()})
    said = (_read_thread_file(thread, "schedstat").split() for thread in threads)
    return sum(int(words[1]) for words in said if len(words) > 1)


def _list_events(metadata: Any) -> list[list[Any]]:
    """List by start [node, kernel start, kernel end, start, end, when scheduled, bytes of its label, long names there].

    Times are in nanoseconds. A name is long if it lies outside of the record that has it.
    """
    events = []
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            start = node.all_start_nanos
            ends = (node.op_start_rel_nanos, node.op_end_rel_nanos, 0, node.all_end_rel_nanos)
            label = node.timeline_label
            names = [node.node_name, *label.rpartition("(")[2].rstrip(")").split(", ")]
            events.append([
                node.node_name, *(start + one for one in ends), node.scheduled_nanos,
                len(label), sum(len(name) > _LONGEST_INLINE for name in names),
            ])  # fmt: skip
    events.sort(key=lambda event: event[3])
    return events

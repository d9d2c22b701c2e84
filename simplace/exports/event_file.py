"""Write a placed graph as a TensorBoard event file, its simulated step times as run metadata.

The messages and the records are TensorBoard's own, which come without TensorFlow. They are imported when a file is
written, for they cost a third of a second. TensorBoard's graph page colours such a graph by device with the devices
*assigned*, and by compute time. The times are simulated, and the tag of the metadata says so. Arguments, variables and
results are renamed into scopes of their own, which the page folds: a box for each of hundreds would leave no room for
the rest.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from simplace.analysis.schedule import Schedule
from simplace.exports import placed_graph_def
from simplace.exports.viewer_scopes import find_scopes
from simplace.graph.graph import Graph
from simplace.placement.placement import Placement

TAG = "simplace_simulated"
FILE_NAME = "events.out.tfevents.{time}.simplace"  # TensorBoard looks for "tfevents", Netron for the beginning too
_VERSION = "brain.Event:2"


def event_file(placement: Placement, schedule: Schedule | None, wall_time: float) -> bytes:
    """Return the file's bytes: version, graph, and the first simulated step where there is a schedule."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.record_writer import RecordWriter

    names = _name_within_scopes(placement.graph)
    events = [
        Event(wall_time=wall_time, file_version=_VERSION),
        Event(wall_time=wall_time, graph_def=placed_graph_def.write_binary(placement, names)),
    ]
    if schedule is not None:
        metadata = {"tag": TAG, "run_metadata": _run_metadata(placement, schedule, names)}
        events.append(Event(wall_time=wall_time, step=0, tagged_run_metadata=metadata))
    file = io.BytesIO()
    writer = RecordWriter(file)
    for one in events:
        writer.write(one.SerializeToString(deterministic=True))
    return file.getvalue()


def _name_within_scopes(graph: Graph) -> list[str]:
    """Return the name of each node by id, with the scope that it is shown in."""
    scopes = find_scopes(graph)
    return [name if "/" in name or not scopes[i] else f"{scopes[i]}/{name}" for i, name in enumerate(graph.names)]


def _run_metadata(placement: Placement, schedule: Schedule, names: Sequence[str]) -> bytes:
    from tensorboard.compat.proto.config_pb2 import RunMetadata

    message = RunMetadata()
    by_device: dict[str, list[tuple[str, int, int]]] = {}
    for name, (start, end) in _collect_times(schedule).items():
        node = placement.graph.ids.get(name, -1)  # a node that partitioning added is not in the graph
        if device := placement.device(node):
            by_device.setdefault(device, []).append((names[node], start, end))
    for device, nodes in sorted(by_device.items()):
        stats = message.step_stats.dev_stats.add(device=device)
        for name, start, end in nodes:
            length = max(1, round((end - start) / 1000))  # microseconds; TensorBoard passes over a time of 0
            stats.node_stats.add(
                node_name=name,
                all_start_micros=start // 1000,
                op_end_rel_micros=length,
                all_end_rel_micros=length,
                timeline_label="simulated by simplace",
            )
    written: bytes = message.SerializeToString(deterministic=True)
    return written


def _collect_times(schedule: Schedule) -> dict[str, tuple[int, int]]:
    """Return start and end, in nanoseconds, of each node that took time in the first step, by start."""
    times: dict[str, tuple[int, int]] = {}
    parts = schedule.estimated.graph.nodes
    for span in schedule.trace.spans:
        node = parts[span.node]
        if span.step or not span.duration or node.role != "op":
            continue
        start, end = times.get(node.name, (span.start, span.end))
        times[node.name] = min(start, span.start), max(end, span.end)
    return times

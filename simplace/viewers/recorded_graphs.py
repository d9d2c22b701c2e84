"""Read the graphs that a program recorded for TensorBoard, and place each of them.

`tf.summary.graph`, a Keras callback and TensorFlow 1's `FileWriter` record a graph of the whole run;
`tf.summary.trace_export` records run metadata with the graphs of functions, as they are before TensorFlow places them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.data import provider
from tensorboard.plugins.graph import metadata

from simplace import api
from simplace.devices.device_name import DeviceName
from simplace.errors import TargetError
from simplace.graph import graph_def
from simplace.graph.node_def import GraphDef
from simplace.program.program import Program

WITH_GRAPHS = (metadata.PLUGIN_NAME_RUN_METADATA, metadata.PLUGIN_NAME_RUN_METADATA_WITH_GRAPH)
KINDS = (metadata.PLUGIN_NAME, *WITH_GRAPHS)
_WRAPPED = "_"  # begins names in the graphs that TensorFlow wraps single ops in, which no GraphDef may have
_DEVICE_TYPES = ("CPU", "GPU")
_UNCHECKED = "it was recorded for TensorBoard; simplace check SCRIPT compares with TensorFlow"


@dataclass(frozen=True, slots=True)
class Recorded:
    """Record of where graphs are: a run, and a tag of one of the kinds of data that hold graphs."""

    run: str
    kind: str
    tag: str

    @property
    def title(self) -> str:
        """Return the run, and the tag where the run has others."""
        return self.run if self.tag == metadata.RUN_GRAPH_NAME else f"{self.run}: {self.tag}"


def list_recorded(data: Any, context: Any, experiment: str) -> list[Recorded]:
    """List what holds graphs, by run; `data` is TensorBoard's data provider."""
    found = []
    for kind in KINDS:
        runs = data.list_blob_sequences(context, experiment_id=experiment, plugin_name=kind)
        tags = [(run, tag) for run, of_run in runs.items() for tag in of_run]
        found += [
            Recorded(run, kind, tag) for run, tag in tags if kind in WITH_GRAPHS or tag == metadata.RUN_GRAPH_NAME
        ]
    return sorted(found, key=lambda one: (one.run, KINDS.index(one.kind), one.tag))


def place_recorded(data: Any, context: Any, experiment: str, recorded: Recorded, devices: str | None) -> api.Placements:
    """Place the graphs that are recorded in one place, on devices such as "cpu:1,gpu:2".

    None stands for the devices that the graphs name, or those of this machine where they name no GPU. Raise a
    `SimplaceError` for unknown devices and for what is no graph, `KeyError` where nothing is recorded.
    """
    blob = _read_blob(data, context, experiment, recorded)
    programs = list(_read_programs(blob, recorded))
    settings = api.settings(
        devices or _name_devices(programs), soft_placement=True if recorded.kind in WITH_GRAPHS else None
    )
    return api.place_programs(recorded.title, programs, settings, _UNCHECKED)


def _name_devices(programs: Iterable[Program]) -> str | None:
    """Return the devices of one task that graphs request, up to the highest numbers; None where they request no GPU."""
    asked = {node.device for program in programs for node in program.graph.nodes}
    found = [name for device in asked if (name := DeviceName.parse(device)) is not None and name.id is not None]
    counts = {
        kind: max((name.id or 0 for name in found if name.type == kind), default=-1) + 1 for kind in _DEVICE_TYPES
    }
    return f"cpu:{max(1, counts['CPU'])},gpu:{counts['GPU']}" if counts["GPU"] else None


def _read_blob(data: Any, context: Any, experiment: str, recorded: Recorded) -> bytes:
    wanted = provider.RunTagFilter(runs=[recorded.run], tags=[recorded.tag])
    found = data.read_blob_sequences(
        context, experiment_id=experiment, plugin_name=recorded.kind, run_tag_filter=wanted, downsample=1
    )
    reference = found[recorded.run][recorded.tag][0].values[0]
    blob: bytes = data.read_blob(context, blob_key=reference.blob_key)
    return blob


def _read_programs(blob: bytes, recorded: Recorded) -> Iterator[Program]:
    if recorded.kind not in WITH_GRAPHS:
        yield Program(recorded.title, "graph", _take_as_run(graph_def.parse_graph_def(blob)), soft_placement=False)
        return
    every = [each.pre_optimization_graph for each in RunMetadata.FromString(blob).function_graphs]
    graphs = [each for each in every if not any(node.name.startswith(_WRAPPED) for node in each.node)]
    if not graphs:
        raise TargetError(f"{recorded.title}: no function was called while this was recorded, only single ops")
    for number, each in enumerate(graphs):
        name = recorded.title if len(graphs) == 1 else f"{recorded.title} {number}"
        yield Program(name, "graph", _take_as_run(graph_def.from_message(each)))


def _take_as_run(graph: GraphDef) -> GraphDef:
    """Return a graph about which TensorFlow is not asked: it ran it, and large constants are left out of a record."""
    return replace(graph, serialized=b"")

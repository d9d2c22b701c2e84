"""Extensions of Model Explorer: `model-explorer MODEL --extensions=simplace.viewers` imports this module.

An adapter opens a model as TensorFlow places it; a node data provider colours the nodes of any TensorFlow graph by
device. See https://github.com/google-ai-edge/model-explorer/wiki.
"""

from __future__ import annotations

from typing import Any

from dacite import Config, from_dict
from model_explorer import graph_builder, node_data_builder
from model_explorer.adapter import Adapter, AdapterMetadata
from model_explorer.config_editor import TextInputConfigEditor
from model_explorer.node_data_provider import (
    GetConfigEditorsResult,
    NodeDataProvider,
    NodeDataProviderMetadata,
    NodeDataProviderResult,
)

from simplace import api
from simplace.errors import SimplaceError
from simplace.exports import model_explorer
from simplace.views.figures.device_colours import device_colours

_SOURCES = ["pb", "pbtxt", "graphdef", "keras", "py"]
_DEVICES = "devices"


class PlacedGraphs(Adapter):  # type: ignore[misc]  # Model Explorer has no types
    """Open a script or a model file as the graphs that TensorFlow's placer makes of it, on this machine's devices."""

    metadata = AdapterMetadata(
        id="simplace",
        name="simplace: placed graphs",
        description="Functions inlined, nodes coloured by the device that TensorFlow assigns. A script is run.",
        fileExts=_SOURCES,
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the graphs of a file; raise a `SimplaceError`, which Model Explorer shows."""
        result = _place(model_path, None)
        made = model_explorer.collect_graphs(result.target, result.programs, device_colours(result.devices))
        return {"graphCollections": [from_dict(graph_builder.GraphCollection, made)]}


class AssignedDevices(NodeDataProvider):  # type: ignore[misc]
    """Colour the nodes of a graph by the device that TensorFlow assigns to the node of that name."""

    metadata = NodeDataProviderMetadata(
        id="simplace_devices",
        name="simplace: devices",
        description="The device of each node, on the devices that you name.",
        icon="developer_board",
    )

    def get_config_editors(self, provider_id: str) -> Any:
        """Ask for the devices."""
        help_text = 'Such as "cpu:1,gpu:2"; empty: those of this machine.'
        asked = TextInputConfigEditor(id=_DEVICES, label="Devices", description=help_text, defaultValue="cpu:1,gpu:1")
        return GetConfigEditorsResult(configEditors=[asked])

    def run(self, provider_id: str, model_path: str, graph_id: str, config_values: dict[str, Any], graph: Any) -> Any:
        """Return the devices of the graph called `graph_id`, or of the largest of the file where none is called so."""
        try:
            result = _place(model_path, config_values.get(_DEVICES) or None)
            colours = device_colours(result.devices)
            found = model_explorer.node_data(result.programs, colours)
            data = found.get(graph_id) or next(iter(model_explorer.node_data([result.largest()], colours).values()))
        except SimplaceError as error:
            return NodeDataProviderResult(error=str(error))
        # Its classes say that a value is a number; its page takes text, too.
        made = from_dict(node_data_builder.GraphNodeData, data, config=Config(check_types=False))
        return NodeDataProviderResult(result=made)


def _place(path: str, devices: str | None) -> api.Placements:
    """Place a file; a graph that requests devices that are not there is shown where it would run, as is a script."""
    return api.place(path, api.settings(devices, soft_placement=None if path.endswith(".py") else True))

"""A copy of a session's graph with each node on a CPU, which grows as the graph does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

_COLOCATION = "_class"


def copy_to_cpus(graph: Any, copy: Any, homes: Mapping[str, str]) -> None:
    """Add to a copy of a graph what it lacks, each node on a CPU: of the task that `homes` has for it, by name."""
    if copy.version >= graph.version:
        return
    known = {op.name for op in copy.get_operations()}
    definition = graph.as_graph_def()
    new = [node for node in definition.node if node.name not in known]
    del definition.node[:]
    definition.node.extend(new)
    for function in definition.library.function:
        for node in function.node_def:
            node.device = _name_cpu(node.device)
    given: dict[str, Any] = {}
    waits: list[tuple[str, str]] = []
    for node in definition.node:
        node.device = _name_cpu(homes.get(node.name, node.device))
        node.attr.pop(_COLOCATION, None)  # all have a device
        inputs = [name for name in node.input if name.removeprefix("^").partition(":")[0] in known]
        waits += [(node.name, name[1:]) for name in inputs if name.startswith("^")]
        tensors = (name if ":" in name else f"{name}:0" for name in inputs if not name.startswith("^"))
        given |= {name: copy.get_tensor_by_name(name) for name in tensors}
        kept = [name for name in node.input if not (name.startswith("^") and name in inputs)]
        del node.input[:]
        node.input.extend(kept)
    with copy.as_default():
        tf.import_graph_def(definition, given, name="")
    for name, before in waits:
        copy.get_operation_by_name(name)._add_control_input(copy.get_operation_by_name(before))


def _name_cpu(device: str) -> str:
    spec = tf.DeviceSpec.from_string(device)
    return device if spec.device_type == "CPU" else str(spec.replace(device_type="CPU", device_index=0).to_string())

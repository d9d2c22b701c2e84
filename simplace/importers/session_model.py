"""Find what TensorFlow would not load of a SavedModel that a session saved, besides the nodes of its graph.

Mirrors tensorflow/python/saved_model/load_v1_in_v2.py and `import_scoped_meta_graph` of
tensorflow/python/framework/meta_graph.py. How many outputs an op has is not looked at.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from simplace.graph.node_def import GraphDef

_REFUSED = "TensorFlow would not load this SavedModel: "
_UNBOUND = "unbound_inputs"  # the one collection that is not imported


def find_session_fault(meta: Any, graph: GraphDef) -> str:
    """Return what is wrong, "" for nothing; `graph` is that of the MetaGraph."""
    fault = next(_list_faults(meta, {node.name for node in graph.nodes}), "")
    return fault and _REFUSED + fault


def _list_faults(meta: Any, nodes: Container[str]) -> Iterator[str]:
    yield from _list_version_faults(meta.meta_info_def.tensorflow_version)
    for key in sorted(meta.collection_def):
        if key != _UNBOUND:
            for name in meta.collection_def[key].node_list.value:
                yield from _list_name_faults(name, nodes)
    if meta.HasField("saver_def"):
        yield from _list_saver_faults(meta.saver_def, nodes)
    for asset in meta.asset_file_def:
        yield from _list_tensor_faults(asset.tensor_info.name, nodes)


def _list_version_faults(version: str) -> Iterator[str]:
    from packaging.version import InvalidVersion, Version  # TensorFlow parses it so, and requires the package

    try:
        Version(version or "0")
    except InvalidVersion as error:  # its own words, in both programs
        yield str(error)


def _list_saver_faults(saver: Any, nodes: Container[str]) -> Iterator[str]:
    for field in ("save_tensor_name", "restore_op_name"):
        if not getattr(saver, field):
            yield f"saver_def must specify the {field}"
    yield from _list_tensor_faults(saver.filename_tensor_name, nodes)
    yield from _list_name_faults(saver.restore_op_name, nodes)


def _list_tensor_faults(name: str, nodes: Container[str]) -> Iterator[str]:
    yield from _list_name_faults(name, nodes)
    if ":" not in name:
        yield f"All members of argument `feeds` must be tensors. Got the operation {name!r}"


def _list_name_faults(name: str, nodes: Container[str]) -> Iterator[str]:
    """List what is wrong with the name of an op or tensor (`Graph.as_graph_element`)."""
    op, *outputs = name.split(":")
    if not outputs:
        if op not in nodes:
            yield f"The name {name!r} refers to an Operation not in the graph."
    elif len(outputs) > 1 or not _is_number(outputs[0]):
        yield (
            f"The name {name!r} looks a like a Tensor name, but is not a valid one. Tensor names must be of the form "
            '"<op_name>:<output_index>".'
        )
    elif op not in nodes:
        yield (
            f"The name {name!r} refers to a Tensor which does not exist. The operation, {op!r}, does not exist in the "
            "graph."
        )


def _is_number(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True

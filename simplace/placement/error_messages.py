"""TensorFlow's own error texts for a refused placement.

Mirrors the messages of tensorflow/core/common_runtime/{colocation_graph,placer}.cc. Where TensorFlow prints a hash
map, the order here is by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import Device, DeviceSet
from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.graph.graph import Graph
from simplace.graph.node_def import FuncRef, ShapeAttr, TensorInfo
from simplace.placement.kernel_support import KernelSupport, Types


class Groups(Protocol):
    """The part of colocation groups that the messages describe: see `simplace.placement.colocation_graph`."""

    graph: Graph
    devices: DeviceSet
    support: KernelSupport
    chosen: list[str]
    own_types: list[Types]

    def root(self, node: int) -> int:
        """Return the node that stands for the whole group."""
        ...

    def members(self) -> dict[int, list[int]]:
        """List the groups by root."""
        ...

    def requested(self, node: int) -> DeviceName:
        """Return what the node's group requests."""
        ...

    def assigned(self, node: int) -> DeviceName:
        """Return the device to which the node's group is fixed."""
        ...

    def resource(self, node: int) -> DeviceName:
        """Return the device of the resource in the node's group."""
        ...

    def types(self, node: int) -> Types:
        """Return the device types that every member can run on."""
        ...

    def every_device(self) -> Sequence[Device]:
        """List all devices in the order of TensorFlow's own set."""
        ...


def attach_def(graph: Graph, message: str, node: int) -> str:
    """Append the node's name the way AttachDef does."""
    tag = graph.names[node] if "{{node " in message else _format_node_def(graph, node)
    return f"{message}\n\t [[{tag}]]"


def cannot_assign(graph: Graph, node: int, message: str) -> str:
    """Return the message that no device can be found for a node (Placer::Run)."""
    return attach_def(graph, f"Cannot assign a device for operation {graph.names[node]}: {message}", node)


def cannot_colocate(graph: Graph, first: int, second: int, why: str) -> str:
    """Return the message that two nodes request incompatible devices."""
    return f"Cannot colocate nodes {_name_constraint(graph, first)} and {_name_constraint(graph, second)}: {why}"


def no_common_type(groups: Groups, first: int, second: int, x: int, y: int) -> str:
    """Return the message that no device type supports both ends of a colocation edge."""
    graph = groups.graph
    return (
        f"Cannot colocate nodes {_name_constraint(graph, first)} and {_name_constraint(graph, second)} "
        "because no device type "
        "supports both of those nodes and the other nodes colocated with them."
        f"{debug_info(groups, x)}{debug_info(groups, y)}"
    )


def joined_by_resource(graph: Graph, why: str, dst: int) -> str:
    """Return the message that a resource or reference edge connects two nodes that cannot share a device."""
    message = (
        "Nodes were connected by a reference or resource connection (requiring them to be on the same device), but "
        f"the two nodes were assigned two different devices: {why}"
    )
    return attach_def(graph, message, dst)


def incompatible_edge(graph: Graph, what: str, one: DeviceName, other: DeviceName, src: int, dst: int) -> str:
    """Return the message that both ends of a resource edge are already fixed to different devices."""
    return (
        f"Cannot place the graph because a reference or resource edge connects colocation groups with incompatible "
        f"{what} devices: {one} vs {other}. The edge src node is name='{graph.names[src]}' (op='{graph.ops[src]}'), "
        f"and the dst node is name='{graph.names[dst]}' (op='{graph.ops[dst]}')."
    )


def malformed_device(graph: Graph, node: int) -> str:
    """Return the message that a requested device does not parse."""
    text = f"Malformed device specification '{graph.requested[node]}' in node: {_debug_string(graph, node)}"
    return attach_def(graph, text, node)


def malformed_assigned_device(graph: Graph, node: int) -> str:
    """Return the message that the assigned device of a node does not parse."""
    return attach_def(graph, f"Malformed assigned device '{graph.assigned[node]}'", node)


def assigned_device_unknown(graph: Graph, node: int, known: Iterable[str]) -> str:
    """Return the message that the assigned device of a node is not in the set."""
    text = (
        f"Assigned device '{graph.assigned[node]}' does not match any device. This error can happen when one attempts "
        "to run a tf.function with resource inputs residing on remote devices. This use case is currently not "
        f"supported. Here are the devices available on this machine: [{', '.join(known)}].If you are seeing this error "
        "when running using a tf.Session, set share_cluster_devices_in_session to true in the tf.ConfigProto."
    )
    return attach_def(graph, text, node)


def assigned_device_without_kernel(graph: Graph, node: int) -> str:
    """Return the message that the assigned device of a node has no kernel for it."""
    text = f"Assigned device '{graph.assigned[node]}' does not have registered OpKernel support for {graph.ops[node]}"
    return attach_def(graph, text, node)


def constraining_failed(what: str, known: DeviceName, device: DeviceName, why: str) -> str:
    """Return that a group has two assigned devices; `what` is the name that differs (Member::AssignDevice)."""
    quotes = '"' if what == "requested" else ""
    return (
        f"Constraining by assigned device should not cause an error. Original root's {what} device name: "
        f"{quotes}{known}{quotes and quotes + ','} node's assigned device name \"{device}{quotes}. Error: {why}"
    )


def no_kernel_registered(graph: Graph, node: int, support: KernelSupport) -> str:
    """Return the message that no device type of the set has a kernel for the op."""
    message = (
        f"No OpKernel was registered to support Op '{graph.ops[node]}' used by {{{{node {graph.names[node]}}}}} with "
        f"these attrs: [{_attrs_text(graph.attrs[node])}]\nRegistered devices: "
        f"[{', '.join(sorted(support.device_types))}]\nRegistered kernels:\n{support.registered(graph.ops[node])}"
    )
    return attach_def(graph, message, node)


def no_candidates(groups: Groups, node: int, root: int) -> str:
    """Return the message why no device fits a node (GetDevicesForNode)."""
    graph = groups.graph
    wanted = groups.requested(root)
    if not wanted.is_set:
        inputs = ", ".join(dtypes.name_in_messages(dtype) for dtype in graph.in_types[node])
        return (
            "Node had no OpKernel registered to support this operation: Operation was "
            f"{graph.ops[node]} and inputs were [{inputs}].\n{debug_info(groups, root)}"
        )
    requested = graph.requested[node]
    if DeviceName.parse(requested) == wanted:
        return _own_request_fails(groups, node, root, wanted)
    every = ", ".join(device.name for device in groups.every_device())
    return (
        f"Could not satisfy explicit device specification '{requested}' because the node "
        f"{_name_constraint(graph, node)} was colocated with a group of nodes that required incompatible device "
        f"'{wanted}'. All available devices [{every}]. {debug_info(groups, root)}"
    )


def _own_request_fails(groups: Groups, node: int, root: int, wanted: DeviceName) -> str:
    graph = groups.graph
    requested = graph.requested[node]
    if not groups.devices.matching(wanted):
        names = ", ".join(sorted(device.name for device in groups.devices))
        return (
            f"{{{{node {graph.names[node]}}}}} was explicitly assigned to {requested} but available devices are "
            f"[ {names} ]. Make sure the device specification refers to a valid device."
        )
    start = f"Could not satisfy explicit device specification '{requested}"
    if wanted.type is None:
        return start + debug_info(groups, root)
    return (
        f"{start}' because no supported kernel for {wanted.type} devices is available.{debug_info(groups, root)}"
        f"\nOp: {graph.ops[node]}\nNode attrs: {_attrs_text(graph.attrs[node])}\nRegistered kernels:\n"
        f"{groups.support.registered(graph.ops[node])}"
    )


def debug_info(groups: Groups, root: int) -> str:
    """Describe a colocation group as TensorFlow's "Colocation Debug Info" does."""
    graph = groups.graph
    root = groups.root(root)
    members = groups.members()[root]
    by_op = {graph.ops[i]: " ".join(kind for kind, _ in groups.own_types[i]) for i in members}
    lines = [
        "",
        "Colocation Debug Info:",
        "Colocation group had the following types and supported devices: ",
        f"Root Member(assigned_device_name_index_={_device_index(groups, members)} "
        f"requested_device_name_='{groups.requested(root)}' assigned_device_name_='{groups.assigned(root)}' "
        f"resource_device_name_='{groups.resource(root)}' "
        f"supported_device_types_=[{', '.join(kind for kind, _ in groups.types(root))}] possible_devices_=[]",
        *(f"{op}: {kinds} " for op, kinds in sorted(by_op.items())),
        "",
        "Colocation members, user-requested devices, and framework assigned devices, if any:",
    ]
    for i in members:
        assigned = f" framework assigned device={groups.chosen[i]}" if groups.chosen[i] else ""
        lines.append(f"  {graph.names[i]} ({graph.ops[i]}) {graph.requested[i]}{assigned}")
    return "\n".join(lines) + "\n"


def node_text(graph: Graph, node: int) -> str:
    """Print a node the way SummarizeNodeDef does."""
    device = graph.requested[node]
    attrs = ", ".join(filter(None, (_attrs_text(graph.attrs[node]), f'_device="{device}"' if device else "")))
    return f"{_format_node_def(graph, node)} = {graph.ops[node]}[{attrs}]({', '.join(graph.input_names(node))})"


def _debug_string(graph: Graph, node: int) -> str:
    """Print a node the way Node::DebugString does (tensorflow/core/graph/graph.cc)."""
    return (
        f"{{name:'{graph.names[node]}' id:{node} op device:{{requested: '{graph.requested[node]}', assigned: "
        f"'{graph.assigned[node]}'}} def:{{{node_text(graph, node)}}}}}"
    )


def _format_node_def(graph: Graph, node: int) -> str:
    """Name a node as FormatNodeDefForError does (node_def_util.cc).

    One that inlining brought is named by its function and its name there (PropagateDebugInfoToNode,
    inline_function_utils.cc).
    """
    origin = graph.origins[node]
    own = next((each.function for each in graph.origins[2:] if not each.via), "")
    if origin.function == own or origin.made_by == "inline":
        return f"{{{{node {graph.names[node]}}}}}"
    return f"{{{{function_node {origin.function}}}}}{{{{node {origin.name}}}}}"


def _attrs_text(attrs: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={_value_text(value)}" for key, value in sorted(attrs.items()))


def _value_text(value: Any) -> str:
    match value:
        case DataType():
            return value.name
        case bool():
            return "true" if value else "false"
        case bytes():
            return _quote_string(value)
        case ShapeAttr(dims):
            return "<unknown>" if dims is None else "[" + ",".join("?" if d < 0 else str(d) for d in dims) + "]"
        case TensorInfo():
            return "<tensor>"
        case FuncRef():
            return value.name
        case tuple():
            return "[" + ", ".join(_value_text(item) for item in value) + "]"
    return str(value)


def _quote_string(value: bytes) -> str:
    """Quote a string as SummarizeString does (attr_value_util.cc): escaped like in C, a long one by its two ends.

    >>> print(_quote_string(b"a\\n'\\xff"), _quote_string(bytes(range(48, 58)) * 9))
    "a\\n\\'\\377" "0123456789...0123456789"
    """
    escaped = "".join(_ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in value)
    return f'"{escaped}"' if len(escaped) < _LONG_STRING else f'"{escaped[:10]}...{escaped[-10:]}"'


_ESCAPES = {
    ord(plain): escaped
    for plain, escaped in {"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "'": r"\'", "\\": r"\\"}.items()
}
_LONG_STRING = 80


def _device_index(groups: Groups, members: list[int]) -> int:
    """Number the device a group is fixed to in the order the graph came to know device names; -1 for none."""
    fixed = next((groups.chosen[i] for i in members if groups.chosen[i]), "")
    names = list(dict.fromkeys(name for name in groups.chosen if name))
    return names.index(fixed) + 1 if fixed else -1


def _name_constraint(graph: Graph, node: int) -> str:
    return "{{colocation_node " + graph.names[node] + "}}"

"""Fix the devices of a function's arguments and results before its nodes are placed.

Mirrors `PinArgsAndRets` of tensorflow/core/common_runtime/optimize_function_graph_utils.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import Device, DeviceSet
from simplace.errors import TargetError
from simplace.graph.builder import CONTROL, Node
from simplace.graph.dtypes import DataType
from simplace.graph.op_kinds import is_arg, is_identity
from simplace.lowering.function_body import Body
from simplace.lowering.op_signatures import Signatures
from simplace.program.status import invalid_argument


def pin_arguments(body: Body, devices: Sequence[str]) -> None:
    """Assign argument i to `devices[i]`, a full device name or "" to leave it to the placer."""
    if len(devices) != len(body.args):
        raise TargetError(
            f"function {body.name!r} takes {len(body.args)} arguments, but devices are given for {len(devices)}"
        )
    for node, device in zip(body.args, devices, strict=True):
        node.assigned = device


def refuse_unseen(arguments: Sequence[str], devices: DeviceSet) -> None:
    """Raise `Refused` for an argument on a task of the cluster that the function's own task does not see.

    Mirrors how a task finds the devices of its inputs (common_runtime/eager/core.cc), before it builds the function. On
    a single machine the placer itself finds the device missing.
    """
    if all(devices.home.same_address_space(device.spec) for device in devices):
        return
    for name in arguments:
        if name and devices.find(name) is None:
            raise invalid_argument(f"{name} unknown device.")


def pin_results(body: Body, devices: DeviceSet, fallback: Device | None, signatures: Signatures) -> None:
    """Assign each result to the device that its producer requests, as far as that names one device.

    `fallback` is the function's default device if soft placement is on, else None. A result whose producer is
    colocated is in that group; one that stays unassigned is left to the placer. Raises `Refused` where TensorFlow
    refuses the producer's device.
    """
    for result in body.results:
        producer = _find_producer(result)
        group = _first_group(producer)
        if group is not None:
            result.attrs = {**result.attrs, "_class": (group,)}
            continue
        wanted = producer.assigned or producer.device
        if wanted and _is_trusted(result, producer, signatures):
            result.assigned = _match_device(wanted, devices, fallback)


def pin_all_results(body: Body, device: str, *, with_resources: bool) -> None:
    """Assign every result to one device, as a caller does that requests it, or all but resources."""
    for result in body.results:
        if with_resources or result.attrs["T"] != DataType.DT_RESOURCE:
            result.assigned = device


def _find_producer(result: Node) -> Node:
    node = _data_source(result)
    while not (node.assigned or node.device) and _first_group(node) is None and is_identity(node.op):
        node = _data_source(node)
    return node


def _data_source(node: Node) -> Node:
    return next(edge.src for edge in node.in_edges if edge.src_slot != CONTROL)


def _first_group(node: Node) -> bytes | None:
    groups = node.attrs.get("_class")
    return groups[0] if isinstance(groups, tuple) and groups and groups[0] else None


def _is_trusted(result: Node, producer: Node, signatures: Signatures) -> bool:
    dtype = result.attrs["T"]
    if dtype == DataType.DT_RESOURCE:
        return not signatures.is_call(producer.op)
    return dtype != DataType.DT_VARIANT or is_arg(producer.op)


def _match_device(wanted: str, devices: DeviceSet, fallback: Device | None) -> str:
    spec = DeviceName.parse(wanted)
    if spec is None:
        raise invalid_argument(f"Failed to parse explicit device specification {wanted}")
    matching = devices.matching(spec)
    if len(matching) == 1:
        return matching[0].name
    if not matching:
        if fallback is None:
            raise invalid_argument(f"Unable to find any devices for spec {wanted}")
        return fallback.name
    if all(matching[0].spec.same_address_space(other.spec) for other in matching):
        return ""
    if fallback is not None and sum(fallback.spec.same_address_space(other.spec) for other in matching) == 1:
        return ""
    # Devices of several tasks are kept in an ordered map (DynamicDeviceMgr in common_runtime/device_mgr.h).
    names = ", ".join(device.name for device in sorted(matching, key=lambda device: device.spec))
    raise invalid_argument(
        f"{wanted}When FunctionLibraryRuntime::Options.output_devices are not specified for a multi-device function, "
        f"the device specification on the output node must match exactly one device. Matched devices are [{names}]"
    )

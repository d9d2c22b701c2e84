"""Request devices that the program did not request, for a what-if."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import DeviceSet
from simplace.errors import DeviceSpecError, join_choices
from simplace.graph.builder import Node
from simplace.program.program import Pin

_GLOB = frozenset("*?[")


def pin_nodes(nodes: Iterable[Node], pins: Sequence[Pin], devices: DeviceSet) -> None:
    """Request each pin's device for the nodes it matches, as a `tf.device` around them would; later pins win.

    A node that is fixed already, such as an argument, is fixed to the first such device instead; raises
    `DeviceSpecError` where there is none, for an argument cannot be on a device that does not exist. Doing it twice
    does no more than doing it once, so that nodes are reached before and after their function is inlined.
    """
    if not pins:
        return
    plain = {pin.pattern: (pin,) for pin in pins if _GLOB.isdisjoint(pin.pattern)}
    is_plain = len(plain) == len(pins)  # many nodes may be named, each once: matching each with all takes long
    for node in nodes:
        for pin in plain.get(node.name, ()) if is_plain else pins:
            if is_plain or fnmatchcase(node.name, pin.pattern):
                _pin_node(node, pin, devices)


def _pin_node(node: Node, pin: Pin, devices: DeviceSet) -> None:
    if node.assigned:
        node.assigned = _find_existing_device(node.name, pin.device, devices)
        return
    own = DeviceName.parse(node.device) or DeviceName()
    if pin.device.type is not None:
        own = own._replace(type=None, id=None)
    node.device = str(own.overwritten_by(pin.device))


def _find_existing_device(name: str, wanted: DeviceName, devices: DeviceSet) -> str:
    found = devices.matching(wanted)
    if not found:
        known = join_choices(device.short for device in devices)
        raise DeviceSpecError(f"{name} cannot be put on {wanted}, because no such device exists; there are: {known}")
    return found[0].name

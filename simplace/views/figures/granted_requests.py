"""Write which requests for a device were not granted."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.devices.device_name import DeviceName
from simplace.placement.placement import Placement, is_request_granted
from simplace.views.text import quantities


def format_ungranted(placement: Placement, nodes: Sequence[int], members: Sequence[int]) -> str:
    """Return the requests of a box that were not granted, with the number of ops unless all `nodes` requested it.

    `members` are these with those drawn with them.
    """
    requested = {node: _format_request(placement, node) for node in members if not was_granted(placement, node)}
    if not requested:
        return ""
    what = min(requested.values()) + (", …" if len(set(requested.values())) > 1 else "")
    return what if requested.keys() >= set(nodes) else f"{what} ({quantities.format_count(len(requested), 'op')})"


def format_required(placement: Placement, node: int) -> str:
    """Return the request of a node that could not be placed."""
    assert placement.refusal is not None, "only a refused placement leaves nodes without a device"
    return _format_request(placement, node)


def was_granted(placement: Placement, node: int) -> bool:
    """Return whether a node has the device that the program requested, if it requested any."""
    written = not placement.graph.origins[node].made_by and not placement.graph.assigned[node]
    return not written or is_request_granted(placement, node)


def _format_request(placement: Placement, node: int) -> str:
    return _shorten_request(placement, placement.graph.requested[node])


def _shorten_request(placement: Placement, text: str) -> str:
    """Return a request as short as the devices allow: the job is included only where there are several tasks."""
    spec = DeviceName.parse(text)
    tasks = {(device.spec.job, device.spec.replica, device.spec.task) for device in placement.devices}
    if spec is None or spec.type is None or len(tasks) > 1:
        return text
    return str(DeviceName(type=spec.type, id=spec.id)).removeprefix("/device:")

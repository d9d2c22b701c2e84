"""Write what a step sends as JSON-ready data: the same counts as in every other output."""

from __future__ import annotations

from typing import Any

from simplace.graph import dtypes
from simplace.partition.collective_members import Collective
from simplace.partition.traffic import CollectiveVolume, Traffic, Volume
from simplace.placement.placement import Placement


def report_traffic(traffic: Traffic) -> dict[str, Any]:
    """Return the counts; "unknown" of a count have no known size."""
    return {
        "copies": _report_volume(traffic.copies),
        "memory_copies": _report_volume(traffic.memory_copies),
        "control_signals": traffic.control_signals,
        "collectives": [_report_volume_of(one) for one in traffic.collectives],
    }


def report_collective(placement: Placement, one: Collective) -> dict[str, Any]:
    """Return one collective; "copies" are places in the list of copies, [] where it is done by collective ops."""
    return {
        "kind": one.kind,
        "members": [placement.graph.names[i] for i in one.members],
        "devices": list(one.devices),
        "participants": one.participants,
        "dtype": dtypes.format_dtype(one.dtype),
        "bytes": one.size,
        "copies": list(one.copies),
    }


def _report_volume(volume: Volume) -> dict[str, int]:
    return {"count": volume.count, "bytes": volume.size, "unknown": volume.unknown}


def _report_volume_of(one: CollectiveVolume) -> dict[str, Any]:
    """Return collectives of one kind; "bytes" are what each participant puts in."""
    return {
        "kind": one.kind,
        "devices": list(one.devices),
        "participants": one.participants,
        **_report_volume(one.volume),
        "copies": one.copies,
    }

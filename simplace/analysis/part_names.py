"""What people call the nodes of a partitioned graph: sends and receives by what they move."""

from __future__ import annotations

from simplace.partition.graph_partition import PartitionedGraph
from simplace.partition.transfers import Copy


def name_part(graph: PartitionedGraph, node: int) -> str:
    """Return the name of a node of a partitioned graph; of a send what it sends where, of a receive what it makes."""
    part = graph.nodes[node]
    if part.copy < 0:
        return part.name
    copy = graph.copies[part.copy]
    target = graph.placed.devices.by_name[copy.target].short
    if copy.is_control:
        return f"{name_copied(copy)} to {target}"
    return f"send {copy.tensor} to {target}" if part.role == "send" else f"copy of {copy.tensor}"


def name_copied(copy: Copy) -> str:
    """Return what a copy moves: a tensor's name, or whose control signal it is."""
    return f"control signal of {copy.tensor.removeprefix('^')}" if copy.is_control else copy.tensor

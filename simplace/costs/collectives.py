"""How long collectives take between GPUs of a machine, as NCCL runs them.

NCCL moves data around rings. Of n GPUs each sends 2 (n - 1) / n of an all-reduce's bytes, (n - 1) / n of an
all-gather's or a reduce-scatter's, all of a broadcast's. It has protocols of little latency for small sizes (LL, LL128)
and one of full bandwidth for large ones (Simple), whose chunks have to travel around the ring before it is full; the
faster one counts. Out of place, all-gather and reduce-scatter also move a GPU's own part within its memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from simplace.costs.gpu_sheet import GB, GpuSheet

Numbers = Any  # a float, or a numpy array of them while constants are fitted
Constants = Mapping[str, float]
Kind = Literal["switch", "mesh", "pcie", "host"]
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall")

# How many rings of single NVLinks NCCL finds among the first n GPUs of a DGX-1 with V100s, whose GPUs have six links
# each to four others, some double ("NVIDIA DGX-1 With Tesla V100" whitepaper, figure 4); as measured with 5 GPUs, where
# it finds less than two.
_MESH_RINGS = {2: 1.0, 3: 2.0, 4: 3.8, 5: 1.65, 6: 2.0, 7: 3.85, 8: 6.0}
_MESH_LINK = 25 * GB  # an NVLink 2 in one direction


@dataclass(frozen=True, slots=True)
class Fabric:
    """Record of what joins the GPUs of a machine: `bandwidth` of one GPU in bytes/s in one direction.

    `kind`: "switch" is NVSwitch, "mesh" NVLinks between some pairs, "pcie" PCIe between peers, "host" PCIe through the
    host's memory. `network` is one card's bandwidth where the GPUs stand in several machines, 0 in one.
    """

    kind: Kind
    bandwidth: float
    network: float = 0.0


def find_fabric(sheet: GpuSheet, network: float = 0.0) -> Fabric:
    """Return what joins GPUs of this kind in the machines that are sold most.

    >>> from simplace.costs.gpu_sheets import SHEETS
    >>> find_fabric(SHEETS["h100"]).kind, find_fabric(SHEETS["t4"]).kind
    ('switch', 'host')
    """
    lanes = {3: 15.75, 4: 31.5, 5: 63.0}[sheet.pcie] * GB
    if "PCIe" not in sheet.name and sheet.nvlink >= 150 * GB:
        kind: Kind = "mesh" if sheet.nvlink_generation == 2 else "switch"
        return Fabric(kind, sheet.nvlink, network)
    return Fabric("host", lanes, network)


def count_whole_bytes(op: str, size: int, gpus: int) -> int:
    """Return what nccl-tests call the size of a collective into which each GPU puts `size` bytes.

    >>> count_whole_bytes("all_reduce", 8, 4), count_whole_bytes("all_gather", 8, 4)
    (8, 32)
    """
    return size * gpus if op == "all_gather" else size


def count_sent_bytes(op: str, size: int, gpus: int) -> float:
    """Return what each of the participants of a ring sends, of the `size` bytes that each puts in.

    >>> count_sent_bytes("all_reduce", 8, 4), count_sent_bytes("all_gather", 8, 4), count_sent_bytes("broadcast", 8, 1)
    (12.0, 24.0, 0.0)
    """
    return count_whole_bytes(op, size, gpus) * _count_parts(op, gpus) if gpus > 1 else 0.0


def count_hops(op: str, gpus: int) -> int:
    """Return how many steps a ring takes, one after the other.

    >>> count_hops("all_reduce", 4), count_hops("alltoall", 4), count_hops("broadcast", 1)
    (6, 1, 0)
    """
    if gpus < 2:
        return 0
    return {"all_reduce": 2 * (gpus - 1), "alltoall": 1}.get(op, gpus - 1)


def _count_parts(op: str, gpus: int) -> float:
    return {"all_reduce": 2 * (gpus - 1) / gpus, "broadcast": 1.0}.get(op, (gpus - 1) / gpus)


def time_collective(
    op: str, size: Numbers, gpus: int, fabric: Fabric, c: Constants, memory_bandwidth: float = 1e12
) -> Numbers:
    """Return the seconds of a collective as NCCL runs it.

    `size` is what nccl-tests call so: of each GPU's buffer for all-reduce, broadcast and alltoall, of the whole for
    all-gather and reduce-scatter. One GPU alone has nothing to send.
    """
    if gpus < 2:
        return size * 0.0
    parts, hops = _count_parts(op, gpus), count_hops(op, gpus)
    bandwidth = _reach_rings(gpus, fabric, c)
    group = "nvlink" if fabric.kind in ("switch", "mesh") else "pcie"
    sent, tree = size * parts, c[f"{group}_tree_s"] * (gpus - 1).bit_length()
    quick = c[f"{group}_quick_s"] + c[f"{group}_quick_hop_s"] * hops + tree + sent / (bandwidth * c[f"{group}_quick"])
    fill = c[f"{group}_fill_s"] * hops ** c["fill_power"] * size / (size + c[f"{group}_fill_bytes"])
    full = c[f"{group}_full_s"] + c[f"{group}_full_hop_s"] * hops + tree + sent / bandwidth + fill
    own = 0.0 if op in ("all_reduce", "broadcast") else 2 * size / gpus / memory_bandwidth * c["own_part"]
    steps = c["network_hop_s"] * hops if fabric.network else 0.0
    return (quick**-_SHARP + full**-_SHARP) ** (-1 / _SHARP) + own + steps


_SHARP = 8.0  # how abruptly the faster protocol, and the slower part of a ring, wins
_MOST_IN_ONE = 8  # GPUs of a machine that share its PCIe roots


def reach_peer(fabric: Fabric, c: Constants) -> float:
    """Return the bytes a second that a copy between two GPUs reaches: as much as a ring of two, which is such copies.

    >>> round(reach_peer(Fabric("host", 15.75 * GB), {"host": 0.4, "host_shared": 0.02}) / GB, 2)
    6.3
    """
    return float(_reach_rings(2, fabric, c))


def _reach_rings(gpus: int, fabric: Fabric, c: Constants) -> float:
    """Return the bytes a second that each GPU sends in all rings together."""
    if fabric.network:
        within = _reach_rings(min(gpus, _MOST_IN_ONE), replace(fabric, network=0.0), c)
        across = fabric.network * c["network_host" if fabric.kind == "host" else "network"]
        return float((within**-_SHARP + across**-_SHARP) ** (-1 / _SHARP))
    if fabric.kind == "mesh":
        return _MESH_LINK * _MESH_RINGS.get(gpus, 6.0) * c["mesh"]
    if fabric.kind == "switch":
        return fabric.bandwidth * c["switch"] * (1 - c["switch_pair"] / gpus)
    shared: float = (2 / gpus) ** c[f"{fabric.kind}_shared"]
    return fabric.bandwidth * c[fabric.kind] * shared

"""Small graphs on GPUs that share links, with copies whose time depends on their bytes."""

from __future__ import annotations

from dataclasses import dataclass

from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.costs.collectives import count_sent_bytes
from simplace.costs.cost_model import CollectiveCall, CostModel, KernelCost, PeerWay
from simplace.devices.device_link import DeviceLink
from simplace.devices.device_set import DeviceSet, local_devices
from simplace.pipeline import place_program
from tests.executor.worlds import Costs
from tests.lowering.worlds import TABLE, session_program

GPUS = [f"/job:localhost/replica:0/task:0/device:GPU:{i}" for i in range(4)]
PARTS = "".join(f"@g{i} @/device:GPU:{i} " for i in range(4)).split()
RATE = 1e6  # bytes/s: 1,000 floats take 4 ms
BOTH_FROM_HOST = """
    x = Placeholder() @c {dtype=float, shape=dims(1000)}
    A = Neg(x) @g0
    B = Neg(x) @g1
"""


@dataclass(frozen=True)
class Wires(Costs):
    """Take 1 ms before the first byte of a copy or a collective, and 1 ms for each 1,000 bytes that one sends."""

    def copy(self, size: int, source: str, target: str) -> float:
        return 0.0 if source == target == "CPU" else 1e-3 + size / RATE

    def collective(self, call: CollectiveCall) -> KernelCost:
        return KernelCost(0.0, 1e-3 + count_sent_bytes(call.op, call.size, call.participants) / RATE)


def run(text: str, *links: DeviceLink, way: PeerWay = "pcie", devices: DeviceSet | None = None) -> Schedule:
    return simulated(text, links, Wires(peer_way=way), devices=devices)


def simulated(text: str, links: tuple[DeviceLink, ...], costs: CostModel, executor: str = "tensorflow",
              devices: DeviceSet | None = None) -> Schedule:  # fmt: skip
    for short, full in zip(PARTS[::2], PARTS[1::2], strict=True):
        text = text.replace(short, full)
    found = (devices or local_devices([("CPU", 1), ("GPU", 4)])).joined_by(links)
    placement = place_program(session_program(text.replace("@c", "@/device:CPU:0")), found, TABLE)
    assert placement.refusal is None, placement.refusal
    return schedule_placement(placement, costs=costs, executor=executor)


def switch(name: str, *gpus: int, bandwidth: int = 0) -> DeviceLink:
    return DeviceLink(name, bandwidth, tuple(GPUS[i] for i in gpus))

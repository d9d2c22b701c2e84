"""Several processes: threads of their own, and a network between them."""

from simplace.analysis.schedule import schedule_placement
from simplace.devices.device_set import DeviceSet, make_device
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from tests.executor.worlds import Costs, ticks
from tests.lowering.worlds import TABLE, session_program

WORKERS = DeviceSet(make_device(f"/job:worker/replica:0/task:{i}/device:CPU:0", is_local=i == 0) for i in range(2))


def placed() -> Placement:
    text = """
        x = Placeholder() @/job:worker/task:0 {dtype=float}
        A = Neg(x) @/job:worker/task:0
        B = Neg(x) @/job:worker/task:1
        C = AddV2(A, B) @/job:worker/task:1
    """
    return place_program(session_program(text), WORKERS, TABLE)


class Networked(Costs):
    """Take 4 ms over the network."""

    def copy(self, size: int, source: str, target: str) -> float:
        return 0.004 if target == "remote" else 0.0


def test_each_process_has_its_threads_and_links_queue() -> None:
    done = schedule_placement(placed(), costs=Networked(), inter_op=1)
    zero, one = "worker/0", "worker/1"
    assert ticks(done) == [
        f"{zero} inter-op 0: A 0-1",
        f"network {zero} → {one}: x:0/_send_0 0-4",
        f"{one} inter-op 0: B 4-5",
        f"network {zero} → {one}: A:0/_send_1 4-8",
        f"{one} inter-op 0: C 8-9",
    ]

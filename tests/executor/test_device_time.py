"""Where the time of each device goes, and the verdict of it."""

from __future__ import annotations

import pytest

from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.costs.cost_model import Overheads
from simplace.devices.device_set import local_devices
from simplace.pipeline import place_program
from simplace.views.text.verdict import device_time_table, round_shares, write_brief_verdict, write_verdict
from tests.executor.test_collective_runs import CONDITIONAL, REDUCE, SLOW_B
from tests.executor.worlds import MS, Costs, run, ticks
from tests.lowering.worlds import TABLE, session_program
from tests.views import graphs
from tests.worlds import constant, node, place

CHAIN = """
    x = Placeholder() @g0 {dtype=float}
    A = Neg(x) @g0
    B = Neg(A) @g0
"""
COPIED = """
    x = Placeholder() @g0 {dtype=float}
    A = Neg(x) @g0
    B = Neg(A) @g1
"""
FROM_HOST = """
    x = Placeholder() @c {dtype=float}
    A = Neg(x) @c
    B = Neg(A) @g0
"""
PIPELINE = """
    it = Placeholder() @c {dtype=resource}
    A = IteratorGetNext(it) @c {output_types=(float,), output_shapes=(shape,)}
    B = Neg(A) @g0
"""


def shares(done: Schedule) -> dict[str, dict[str, float]]:
    """Map each device to what its time goes into, in ms, without what is 0."""
    found = {}
    for one in done.device_times:
        times = {"busy": one.busy, "idle": one.idle} | {cause: waited.time for cause, waited in one.waits.items()}
        found[one.device[-5:]] = {name: time / MS for name, time in times.items() if time}
    return found


def test_a_gpu_waits_for_the_host_to_launch() -> None:
    done = run(CHAIN, Costs(default=1.0, launch=4.0), inter_op=1)
    assert shares(done) == {"CPU:0": {"idle": 9.0}, "GPU:0": {"busy": 2.0, "launches": 7.0}, "GPU:1": {"idle": 9.0}}
    assert write_verdict(done) == (
        "GPU:0 busy 22%, launch-bound: it waits for the host to launch 2 kernels of 1 ms ± 50% during 78% of the step; "
        "GPU:1 idle: nothing requests it"
    )


def test_a_gpu_is_busy_with_kernels_that_are_too_small_for_it() -> None:
    done = run(CHAIN, Costs(default=0.01, small=True), inter_op=1)
    assert write_verdict(done).startswith("GPU:0 busy 100%, latency-bound: 2 kernels of 10 µs ± 50%;")
    assert write_verdict(run(CHAIN, Costs(default=0.01), inter_op=1)).startswith("GPU:0 busy 100%;")


def test_a_gpu_waits_for_the_other_and_for_the_copy() -> None:
    done = run(COPIED, Costs({"A": 3.0, "B": 1.0}, copies=5.0), inter_op=1)
    assert shares(done)["GPU:1"] == {"busy": 1.0, "devices": 3.0, "copies": 5.0}
    assert shares(done)["GPU:0"] == {"busy": 3.0, "devices": 1.0, "copies": 5.0}
    assert write_verdict(done) == (
        "GPU:0, GPU:1 busy 33% and 11%, copy-bound: each waits for copies during 56% of the step, longest for A:0 (4 B)"
    )


def test_a_gpu_waits_for_an_op_on_the_cpu() -> None:
    done = run(FROM_HOST, Costs({"A": 7.0, "B": 2.0}), inter_op=1)
    assert shares(done)["GPU:0"] == {"busy": 2.0, "devices": 7.0, "copies": 1.0}
    assert write_verdict(done).startswith("GPU:0 busy 20%, it waits for CPU:0 during 70% of the step, longest for A;")


def test_a_gpu_waits_for_the_input_pipeline() -> None:
    done = run(PIPELINE, Costs({"A": 7.0, "B": 2.0}), inter_op=1)
    assert shares(done)["GPU:0"] == {"busy": 2.0, "input": 7.0, "copies": 1.0}
    verdict = "GPU:0 busy 20%, input-bound: it waits for the input pipeline during 70% of the step, longest for A;"
    assert write_verdict(done).startswith(verdict)


def test_a_cpu_alone_is_not_said_to_wait_for_launches() -> None:
    program = session_program("x = Placeholder() {dtype=float}\n A = Neg(x)")
    placement = place_program(program, local_devices([("CPU", 1)]), TABLE)
    slow, quick = (
        schedule_placement(placement, costs=Costs({"A": time}, overheads=Overheads(hand_off_s=3e-3)), inter_op=1)
        for time in (1.0, 7.0)
    )
    assert write_verdict(quick) == "CPU:0 busy 70%, waits 30% for the executor"
    assert write_verdict(slow) == (
        "CPU:0 busy 25%, bound by the executor: its bookkeeping and hand-offs between threads take 75% of the step"
    )


def test_a_member_waits_for_the_other_gpu_then_for_the_collective() -> None:
    done = run(REDUCE, SLOW_B, inter_op=2)
    assert shares(done)["GPU:0"] == {"busy": 3.0, "devices": 5.0, "collectives": 3.0}
    assert shares(done)["GPU:1"] == {"busy": 8.0, "collectives": 3.0}


def test_a_busy_gpu_is_just_busy() -> None:
    done = run(CHAIN, Costs({"A": 8.0, "B": 1.0}, launch=0.5), inter_op=1)
    assert write_verdict(done).split("; ")[0] == "GPU:0 busy 95%"


OVERHEADS = Overheads(op_s=1e-4, hand_off_s=3e-4, poll_s=2e-4, step_s=5e-4)


@pytest.mark.parametrize("executor", ["tensorflow", "textbook"])
@pytest.mark.parametrize("text", [CHAIN, COPIED, FROM_HOST, PIPELINE, REDUCE, CONDITIONAL])
@pytest.mark.parametrize("steps", [1, 3])
def test_the_time_of_each_device_adds_up_to_the_step(text: str, executor: str, steps: int) -> None:
    done = run(text, Costs(overheads=OVERHEADS, launch=0.3), executor=executor, steps=steps, inter_op=2)
    for one in done.device_times:
        assert one.whole == done.trace.makespan
        assert one.busy + one.idle + sum(waited.time for waited in one.waits.values()) == one.whole
    rows = [[int(cell.rstrip("%")) for cell in row[1:] if cell != "-"] for row in device_time_table(done).rows]
    assert [sum(row) for row in rows] == [100] * len(done.device_times)


def test_busy_is_what_the_devices_are_said_to_be_busy_elsewhere() -> None:
    done = run(COPIED, Costs(launch=0.3, overheads=OVERHEADS))
    told = {one.device[-5:]: one.busy for one in done.device_times if not one.idle}
    assert told == {one.name: one.busy for one in done.busy_devices if one.busy}


def test_a_kernel_that_waits_for_its_own_launches_is_busy_without() -> None:
    done = run(CHAIN, Costs({"A": 8.0, "B": 1.0}, launch=0.5, more={"A": 6.0}), inter_op=1)
    assert shares(done)["GPU:0"] == {"busy": 6.0, "launches": 3.5}
    assert [one.busy / MS for one in (*done.busy_tracks, *done.busy_devices) if one.name.startswith("GPU:0")] == [6, 6]


@pytest.mark.parametrize("times", [[1, 1, 1], [5, 0, 0], [333, 333, 334, 1], [1, 999_999]])
def test_rounded_shares_add_up(times: list[int]) -> None:
    assert sum(round_shares(times)) == 100


def test_a_brief_verdict_counts_devices_where_their_names_are_many() -> None:
    apart = [node(f"n{gpu}", "Neg", "a", device=f"/gpu:{gpu}") for gpu in (0, 2, 4, 6)]
    done = schedule_placement(place(constant("a", (4,), "/cpu:0"), *apart, gpus=8), costs=Costs())
    verdict, brief = write_verdict(done), write_brief_verdict(done)
    assert verdict.startswith("GPU:0, GPU:2, GPU:4, GPU:6 busy 50%, each waits 50% for copies; GPU:1, GPU:3,")
    assert brief == "4 GPUs busy 50%; 4 GPUs idle"


def test_a_brief_verdict_tells_last_what_is_idle_and_counts_long_names() -> None:
    lone = schedule_placement(
        place(constant("a", (4,), "/cpu:0"), node("n", "Neg", "a", device="/gpu:1"), gpus=3), costs=Costs()
    )
    assert write_brief_verdict(lone).endswith("; GPU:0, GPU:2 idle")
    brief = write_brief_verdict(schedule_placement(graphs.two_tasks(4), costs=Costs()))
    assert "8 GPUs busy" in brief, "their names have too many letters"


def test_integers_of_a_gpu_are_computed_in_host_memory() -> None:
    done = run(
        """
        i = Placeholder() @g0 {dtype=int32}
        next = AddV2(i, i) @g0 {T=int32}
        x = Placeholder() @g0 {dtype=float}
        y = AddV2(x, x) @g0
        """,
        Costs(launch=0.5, times={"next": 2.0}),
        inter_op=1,
    )
    assert ticks(done) == [
        "inter-op 0: y 0-0.5", "GPU:0 to host: i:0/_send_0 0-1", "GPU:0 compute: y 0.5-1.5", "inter-op 0: next 1-3",
    ]  # fmt: skip

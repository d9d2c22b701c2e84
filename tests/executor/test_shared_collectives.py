"""Collectives over links that several GPUs or tasks share: what passes which link, and how much longer it takes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.costs.cost_model import PeerWay
from simplace.devices.device_link import DeviceLink
from simplace.devices.device_set import DeviceSet, local_devices, make_device
from simplace.executor.execution import EXECUTORS
from simplace.exports.chrome_trace import chrome_trace
from simplace.exports.schedule_report import report_schedule
from simplace.pipeline import place_program
from simplace.report.schedule_data import schedule_data
from simplace.views.text.sharing_phrases import describe_shared_hardware
from tests.executor.linked_worlds import GPUS, Wires, run, simulated, switch
from tests.lowering.worlds import TABLE, session_program

MS = 1_000_000


def join(gpus: tuple[int, ...], key: str = "c", floats: int = 1000) -> str:
    """Return the lines of an all-reduce of 1,000 floats: one of two GPUs sends as many bytes, in 4 ms."""
    lines = [
        f"{key}x{i} = Placeholder() @g{i} {{dtype=float, shape=dims({floats})}}\n"
        f"{key}{i} = NcclAllReduce({key}x{i}) @g{i} "
        f'{{num_devices={len(gpus)}, reduction=b"sum", shared_name=b"{key}"}}'
        for i in gpus
    ]
    return "\n".join(lines) + "\n"


def lengths(done: Schedule) -> list[float]:
    return [span.duration / MS for span in done.trace.spans if span.kind == "collective"]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("way", "gpus", "behind", "took"),
    [
        ("host", (0, 1), (), 5),
        ("host", (0, 1), (0,), 5),
        ("host", (0, 1), (2, 3), 5),  # others' link
        ("host", (0, 1), (0, 1), 9),  # both send to the host's memory, and both receive from there
        ("host", (0, 1), (0, 1, 2, 3), 9),
        ("host", (0, 1, 2, 3), (0, 1, 2, 3), 25),  # each sends 6 KB, so 24 ms
        ("pcie", (0, 1), (0, 1), 5),  # under one switch
        ("pcie", (0, 1, 2, 3), (0, 1), 7),  # one hands on, to another one behind another switch
        ("nvlink", (0, 1), (0, 1), 5),
    ],
)
def test_a_ring_passes_what_its_members_are_behind(
    executor: str, way: PeerWay, gpus: tuple[int, ...], behind: tuple[int, ...], took: float
) -> None:
    links = (switch("switch", *behind),) if behind else ()
    done = simulated(join(gpus), links, Wires(peer_way=way), executor)
    assert lengths(done) == [took] * len(gpus)


def test_logical_gpus_of_a_card_hand_on_within_it() -> None:
    """Two halves of two cards: each card hands on once."""
    halves = local_devices([("CPU", 1), ("GPU", 4)]).on_cards({name: i // 2 for i, name in enumerate(GPUS)})
    wide = simulated(join((0, 1, 2, 3)), (switch("switch", 0, 1, 2, 3),), Wires(peer_way="host"), devices=halves)
    assert lengths(wide) == [13.0] * 4  # of both cards 6 KB each way
    inside = simulated(join((0, 1)), (switch("switch", 0, 1),), Wires(peer_way="host"), devices=halves)
    assert not inside.trace.shared


def test_a_switch_that_is_slower_than_a_ring_slows_it_down() -> None:
    done = run(join((0, 1, 2, 3)), switch("switch", 0, 1, bandwidth=500_000))
    assert lengths(done) == [13.0] * 4
    assert {(copy.alone, copy.slowed_by, copy.others) for copy in done.trace.shared.values()} == {(7 * MS, 0, ())}
    assert sorted(copy.ways for copy in done.trace.shared.values()) == [(), (), (0, 1), (0, 1)]
    report = json.loads(json.dumps(report_schedule(done, "")))
    assert (report["shared_links"][0]["copies"], report["shared_links"][0]["members"]) == (0, 2)
    assert sorted(span["sharing"]["links"] for span in report["spans"] if "sharing" in span) == [[], [], [0], [0]]
    assert sum("alone (µs)" in slice.get("args", {}) for slice in chrome_trace(done)["traceEvents"]) == 4


def broadcast(gpus: tuple[int, ...], root: int) -> str:
    """Return the lines of a broadcast of 1,000 floats to GPUs: 4 ms."""
    keys = f"group_size={len(gpus)}, group_key=1, instance_key=1, T=float, shape=dims(1000)"
    lines = [
        f"x = Placeholder() @g{i} {{dtype=float, shape=dims(1000)}}\nb{i} = CollectiveBcastSend(x) @g{i} {{{keys}}}\n"
        if i == root else f"b{i} = CollectiveBcastRecv() @g{i} {{{keys}}}\n"
        for i in gpus
    ]  # fmt: skip
    return "".join(lines)


@pytest.mark.parametrize(
    ("way", "gpus", "root", "switches", "took"),
    [
        ("host", (0, 1), 0, [(0, 1)], 5),  # one sends, the other one receives
        ("host", (0, 1, 2, 3), 0, [(0, 1, 2, 3)], 13),  # three hops, each out and in
        ("host", (0, 1, 2, 3), 1, [(0, 1)], 9),  # 1 to 0, and on to 2: two leave, one comes in
        ("host", (0, 1, 2, 3), 2, [(0, 1)], 9),  # two come in, one leaves
        ("pcie", (0, 1, 2, 3), 1, [(0, 1), (2, 3)], 5),  # once out of the one, and into the other
    ],
)
def test_a_broadcast_goes_from_its_root_to_the_last(
    way: PeerWay, gpus: tuple[int, ...], root: int, switches: list[tuple[int, ...]], took: float
) -> None:
    done = run(broadcast(gpus, root), *(switch(f"switch {i}", *behind) for i, behind in enumerate(switches)), way=way)
    assert lengths(done) == [took] * len(gpus)


def test_a_broadcast_leaves_the_root_and_enters_the_others() -> None:
    """The ways of each member, 2 i out of switch i and 2 i + 1 into it; behind two switches below a port."""
    links = (switch("port", 0, 1, 2, 3), switch("left", 0, 1), switch("right", 2, 3))
    done = run(broadcast((0, 1, 2, 3), 1), *links)
    assert {done.estimated.graph.nodes[done.trace.spans[span].node].name: shared.ways
            for span, shared in done.trace.shared.items()} == {
        "b0": (2,), "b1": (2,), "b2": (5,), "b3": (5,),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("way", "behind", "took"), [("host", (0, 1, 2, 3), 13), ("pcie", (0, 1), 5), ("nvlink", (0, 1, 2, 3), 4)]
)
def test_in_an_all_to_all_each_sends_to_each_other_one(way: PeerWay, behind: tuple[int, ...], took: float) -> None:
    """Of 4 KB each keeps a quarter. Of what two behind a switch send, 2 KB stay there, and 4 KB leave."""
    text = "n = Placeholder() @c {dtype=int32}\n" + "".join(
        f"x{i} = Placeholder() @g{i} {{dtype=float, shape=dims(1000)}}\n"
        f"a{i} = CollectiveAllToAllV2(x{i}, n, n, n) @g{i} {{T=float}}\n"
        for i in range(4)
    )
    assert lengths(run(text, switch("switch", *behind), way=way)) == [took] * 4


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_collective_and_a_copy_share_a_link(executor: str) -> None:
    """Both come in by the switch: the ring of two twice, the copy once; each has a third of it for 4 KB of 1 MB/s."""
    text = join((0, 1)) + "y = Placeholder() @c {dtype=float, shape=dims(1000)}\nA = Neg(y) @g2\n"
    done = simulated(text, (switch("switch", 0, 1, 2),), Wires(peer_way="host"), executor)
    assert lengths(done) == [13.0, 13.0]
    assert [span.duration / MS for span in done.trace.spans if span.kind == "copy"] == [13.0]
    (use,) = done.shared_links
    assert (use.copies, use.members, use.busy, use.took, use.alone) == (1, 2, 12 * MS, 39 * MS, 15 * MS)


def test_what_is_shared_is_said() -> None:
    text = join((0, 1)) + "y = Placeholder() @c {dtype=float, shape=dims(1000)}\nA = Neg(y) @g2\n"
    done = run(text, switch("switch", 0, 1, 2), way="host")
    rate = "switch (1 MB/s each way, shared by GPU:0 … GPU:2)"
    share = round(100 * 12 / (done.trace.makespan / MS))
    assert describe_shared_hardware(done) == [
        f"{rate}: busy {share}%; its copy and 2 members of collectives took 2.6 times as long as without it"
    ]
    assert set(schedule_data(done)["sharing"].values()) == {
        "5 ms ± 50% alone: shares switch with copies and collectives of GPU:1, GPU:2",
        "5 ms ± 50% alone: shares switch with copies and collectives of GPU:0, GPU:2",
        "5 ms ± 25% on its own link: shares switch with collectives of GPU:0, GPU:1",
    }
    alone = run(join((0, 1)), switch("switch", 0, 1), way="host")
    assert set(schedule_data(alone)["sharing"].values()) == {
        "5 ms ± 50% alone: shares switch with collectives of GPU:0",
        "5 ms ± 50% alone: shares switch with collectives of GPU:1",
    }
    slow = run(join((0, 1)), switch("switch", 0, bandwidth=500_000), way="host")
    assert set(schedule_data(slow)["sharing"].values()) == {
        "5 ms ± 50% alone: switch is slower",
        "5 ms ± 50% alone: switch holds other members up",
    }


GROUPS = st.lists(st.sets(st.integers(0, 3), min_size=1).map(lambda gpus: tuple(sorted(gpus))), min_size=2, max_size=6)


@pytest.mark.parametrize("executor", EXECUTORS)
@settings(deadline=None, max_examples=30)
@given(groups=GROUPS, times=st.lists(st.sampled_from((0.37, 1.91, 4.3)), min_size=4, max_size=4))
def test_collectives_queue_up_as_without_links_where_there_is_room(
    executor: str, groups: list[tuple[int, ...]], times: list[float]
) -> None:
    """Each begins when it is the first of all its members, and what these have to compute before is done."""
    text = "".join(join(gpus, f"k{i}_", 1000 + 37 * i) for i, gpus in enumerate(groups))
    text += "".join(f"x{i} = Placeholder() @g{i} {{dtype=float}}\nA{i} = Neg(x{i}) @g{i}\n" for i in range(4))
    costs = Wires({f"A{i}": time for i, time in enumerate(times)}, peer_way="host")
    wide = switch("switch", 0, 1, 2, 3, bandwidth=10**9)
    done = simulated(text, (wide,), costs, executor)
    assert done.trace.spans == simulated(text, (), costs, executor).trace.spans


@pytest.mark.parametrize(
    ("way", "cards", "switches", "took"),
    [
        ("host", [], [], 7),
        ("host", [(0,)], [], 7),  # one of a task's GPUs hands on to the other task
        ("host", [(0, 1)], [], 7),  # both tasks are behind one card: what they exchange does not leave it
        ("host", [], [(0, 1)], 13),  # both of a task's GPUs send to its memory, or its card
        ("nvlink", [], [(0, 1)], 7),  # one of them
    ],
)
def test_a_ring_of_two_tasks_leaves_each_by_one_gpu(
    way: PeerWay, cards: list[tuple[int, ...]], switches: list[tuple[int, ...]], took: float
) -> None:
    tasks = [f"/job:worker/replica:0/task:{i}" for i in range(2)]
    gpus = [f"{task}/device:GPU:{i}" for task in tasks for i in range(2)]
    names = [f"{task}/device:CPU:0" for task in tasks] + gpus
    links = [DeviceLink("card", 0, tasks=tuple(tasks[i] for i in card)) for card in cards]
    links += [DeviceLink("switch", 0, tuple(gpus[i] for i in behind)) for behind in switches]
    devices = DeviceSet(make_device(name, is_local="task:0" in name) for name in names).joined_by(links)
    text = join((0, 1, 2, 3))
    for i, name in enumerate(gpus):
        text = text.replace(f"@g{i}", f"@{name}")
    done = schedule_placement(place_program(session_program(text), devices, TABLE), costs=Remote(peer_way=way))
    assert lengths(done) == [took] * 4


def test_a_ring_of_cpus_passes_the_network_cards_of_its_tasks() -> None:
    """Two tasks behind one card that is half as fast as the network."""
    names = [f"/job:worker/replica:0/task:{i}/device:CPU:0" for i in range(2)]
    tasks = tuple(name.partition("/device:")[0] for name in names)
    devices = DeviceSet(make_device(name, is_local="task:0" in name) for name in names)
    text = "n = Placeholder() {dtype=int32}\n" + "".join(
        f"x{i} = Placeholder() @{name} {{dtype=float, shape=dims(1000)}}\n"
        f'r{i} = CollectiveReduceV2(x{i}, n, n, n) @{name} {{T=float, merge_op=b"Add", final_op=b"Id"}}\n'
        for i, name in enumerate(names)
    )

    def simulate(*links: DeviceLink) -> Schedule:
        placement = place_program(session_program(text), devices.joined_by(links), TABLE)
        return schedule_placement(placement, costs=Remote())

    assert lengths(simulate()) == [5.0] * 2
    assert lengths(simulate(DeviceLink("card", 500_000, tasks=tasks[:1]))) == [9.0] * 2
    assert lengths(simulate(DeviceLink("card", 0, tasks=tasks))) == [5.0] * 2  # which hands on within itself


class Remote(Wires):
    """Have wires between tasks, as fast as those between GPUs."""

    def copy(self, size: int, source: str, target: str) -> float:
        return super().copy(size, "GPU", target)

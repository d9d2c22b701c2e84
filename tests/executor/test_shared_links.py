"""Links that several GPUs or tasks share: which copies pass them, and how much later these end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.costs.chosen_model import cost_model
from simplace.costs.cost_model import PeerWay
from simplace.costs.flat_costs import FlatCosts
from simplace.devices.device_link import DeviceLink
from simplace.devices.device_set import DeviceSet, local_devices, make_device
from simplace.executor.execution import EXECUTORS
from simplace.machine.device_links import find_device_links
from simplace.machine.machine import Machine
from simplace.machine.machine_file import read_machine_file
from simplace.pipeline import place_program
from tests.executor import test_invariants
from tests.executor.linked_worlds import BOTH_FROM_HOST, GPUS, RATE, Wires, run, simulated, switch
from tests.executor.worlds import Costs, ticks
from tests.lowering.worlds import TABLE, session_program

SAMPLES = Path(__file__).parents[2] / "samples"


def copies(done: Schedule) -> list[str]:
    return [tick for tick in ticks(done) if "_send_" in tick]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_copies_to_two_gpus_of_a_switch_take_twice_as_long(executor: str) -> None:
    alone = simulated(BOTH_FROM_HOST, (), Wires(), executor)
    shared = simulated(BOTH_FROM_HOST, (switch("switch", 0, 1),), Wires(), executor)
    assert [tick.rpartition(" ")[2] for tick in copies(alone)] == ["0-5", "0-5"]
    assert [tick.rpartition(" ")[2] for tick in copies(shared)] == ["0-9", "0-9"]
    assert shared.trace.makespan - alone.trace.makespan == 4_000_000


def test_a_copy_says_with_which_others_it_shared() -> None:
    done = run(BOTH_FROM_HOST, switch("switch", 0, 1))
    names = [track.name for track in done.trace.tracks]
    for number, copy in done.trace.shared.items():
        own = done.trace.spans[number].track
        assert (copy.alone, copy.moves_at, copy.ways, copy.slowed_by) == (5_000_000, 1_000_000, (1,), 0)
        assert [names[track] for track in copy.others] == [
            name for name in ("GPU:0 from host", "GPU:1 from host") if name != names[own]
        ]
    (use,) = done.shared_links
    assert (use.copies, use.busy, use.took, use.alone) == (2, 8_000_000, 18_000_000, 10_000_000)
    assert use.link == ("switch", RATE, ("GPU:0", "GPU:1"))


def test_the_two_directions_of_a_link_do_not_share() -> None:
    text = """
        x = Placeholder() @c {dtype=float, shape=dims(1000)}
        y = Placeholder() @g1 {dtype=float, shape=dims(1000)}
        A = Neg(x) @g0
        B = Neg(y) @c
    """
    assert copies(run(text, switch("switch", 0, 1))) == [
        "GPU:0 from host: x:0/_send_0 0-5",
        "GPU:1 to host: y:0/_send_1 0-5",
    ]


def test_nested_links_are_passed_both() -> None:
    """Three GPUs read at once: the two of the slower switch have half of it each, the third has the rest."""
    text = BOTH_FROM_HOST + "    C = Neg(x) @g2\n"
    links = switch("switch", 0, 1, bandwidth=500_000), switch("port", 0, 1, 2, bandwidth=1_250_000)
    assert copies(run(text, *links)) == [
        "GPU:0 from host: x:0/_send_0 0-17",
        "GPU:1 from host: x:0/_send_1 0-17",
        "GPU:2 from host: x:0/_send_2 0-6.33333",
    ]


PEERS = """
    x = Placeholder() @g0 {dtype=float, shape=dims(1000)}
    y = Placeholder() @g2 {dtype=float, shape=dims(1000)}
    A = Neg(x) @g1
    B = Neg(y) @g1
"""


@pytest.mark.parametrize(
    ("way", "gpus", "ends"),
    [
        ("nvlink", (0, 1), [5, 5]),
        ("pcie", (0, 1, 2), [5, 5]),  # under one switch
        ("pcie", (1,), [9, 9]),  # both come to GPU:1
        ("pcie", (0, 2), [9, 9]),  # both leave the switch
        ("pcie", (0, 1), [5, 5]),  # one stays under it, one comes from elsewhere
        ("host", (0, 1), [9, 9]),  # both come from the host's memory
    ],
)
def test_copies_between_gpus_pass_what_joins_only_one_of_them(
    way: PeerWay, gpus: tuple[int, ...], ends: list[int]
) -> None:
    done = run(PEERS, switch("switch", *gpus), way=way)
    assert [span.end // 1_000_000 for span in done.trace.spans if span.kind == "copy"] == ends


HALVES = local_devices([("CPU", 1), ("GPU", 2)]).on_cards(dict.fromkeys(GPUS[:2], 0))


def test_logical_gpus_of_one_share_its_link_but_not_between_themselves() -> None:
    links = find_device_links(Machine(), HALVES)
    both = simulated(BOTH_FROM_HOST, links, Wires(), devices=HALVES)
    assert [span.end for span in both.trace.spans if span.kind == "copy"] == [9_000_000] * 2
    inside = "x = Placeholder() @g0 {dtype=float, shape=dims(1000)}\nA = Neg(x) @g1\n"
    assert not simulated(inside, links, Wires(peer_way="host"), devices=HALVES).trace.shared


def test_a_queue_begins_the_next_copy_when_the_last_byte_has_passed() -> None:
    text = BOTH_FROM_HOST.replace(
        "A = Neg(x)", "z = Placeholder() @c {dtype=float, shape=dims(1000)}\n    A = AddV2(x, z)"
    )
    done = run(text, switch("switch", 0, 1))
    assert sorted(copies(done)) == [
        "GPU:0 from host: x:0/_send_0 0-9",
        "GPU:0 from host: z:0/_send_1 9-14",
        "GPU:1 from host: x:0/_send_2 0-9",
    ]
    assert done.waiting_by_cause["link"] == 9_000_000


def test_all_that_a_task_sends_goes_through_its_card() -> None:
    workers = [f"/job:worker/replica:0/task:{i}" for i in range(3)]
    devices = DeviceSet(make_device(f"{worker}/device:CPU:0", is_local=not i) for i, worker in enumerate(workers))
    text = """
        x = Placeholder() @/job:worker/task:0 {dtype=float, shape=dims(1000)}
        A = Neg(x) @/job:worker/task:1
        B = Neg(x) @/job:worker/task:2
    """

    def ends(*tasks: int) -> list[int]:
        card = DeviceLink("card", 0, tasks=tuple(workers[i] for i in tasks))
        done = schedule_placement(
            place_program(session_program(text), devices.joined_by([card] if tasks else []), TABLE), costs=Remote()
        )
        return [span.end // 1_000_000 for span in done.trace.spans if span.kind == "copy"]

    assert ends() == [5, 5]
    assert ends(0) == [9, 9]  # both leave worker 0
    assert ends(1, 2) == [9, 9]  # both come to those that share the card
    assert ends(0, 1) == [5, 5]  # one stays among them
    assert ends(1) == [5, 5]


class Remote(Wires):
    """Have wires between tasks."""

    def copy(self, size: int, source: str, target: str) -> float:
        return 1e-3 + size / RATE if target == "remote" else 0.0


@pytest.mark.parametrize("executor", EXECUTORS)
@test_invariants.COMMON
@given(world=test_invariants.graphs(), rate=st.sampled_from((2e3, 8e3)))
def test_links_with_room_for_all_change_nothing(executor: str, world: tuple[str, Costs], rate: float) -> None:
    text, costs = world
    times = {name: 0.4 + 0.0731 * i for i, name in enumerate(costs.times)}  # no two sums are equal
    wired = Fast(times, launch=costs.launch, shards=costs.shards, rate=rate)
    before = simulated(text, (), wired, executor)
    after = simulated(text, (switch("switch", 0, 1, bandwidth=10**9),), wired, executor)
    lengths = {span.node: span.duration for span in before.trace.spans if span.kind == "copy"}
    assert {span.node: span.duration for span in after.trace.spans if span.kind == "copy"} == lengths
    assert all(copy.slowed_by == -1 for copy in after.trace.shared.values())
    ends = [span.end for span in before.trace.spans if span.kind == "copy"]
    if len(set(ends)) == len(ends):  # else of two that end at once another one may be seen first
        assert after.trace.spans == before.trace.spans
        assert sorted(after.trace.memory) == sorted(before.trace.memory)


@dataclass(frozen=True)
class Fast(Costs):
    """Move scalars at a rate, after a latency that no other time is a multiple of."""

    rate: float = 1e3

    def copy(self, size: int, source: str, target: str) -> float:
        return 0.0 if source == target == "CPU" else 1.37e-4 + size / self.rate


def test_the_sample_machine_has_later_ends_by_what_its_links_lack() -> None:
    """All GPUs read 64 MiB at once: a T4 alone takes 15.75 GB/s, the port leaves each of the four a quarter of it."""
    machine, _ = read_machine_file(SAMPLES / "four_gpus.toml")
    cards = {name: number for number, name in enumerate(GPUS)}
    links = find_device_links(machine, local_devices([("CPU", 1), ("GPU", 4)]).on_cards(cards))
    lines = [f"A{i} = Neg(x) @g{i}" for i in range(4)]
    text = "x = Placeholder() @c {dtype=float, shape=dims(16777216)}\n" + "\n".join(lines)
    ends = {}
    for name, shared in (("alone", ()), ("shared", links)):
        spans = simulated(text, shared, T4()).trace.spans
        ends[name] = max(span.end for span in spans if span.kind == "copy")
    assert ends["alone"] == round(1e9 * 2**26 / 15.75e9)
    assert ends["shared"] == pytest.approx(4 * 1e9 * 2**26 / 15.75e9, abs=2)


@dataclass(frozen=True)
class T4(Costs):
    """Copy at the rate of a T4's PCIe, without a latency."""

    def copy(self, size: int, source: str, target: str) -> float:
        return 0.0 if source == target == "CPU" else size / 15.75e9


@pytest.mark.parametrize(
    ("costs", "gpu", "way"),
    [
        ("modelled", "a100", "nvlink"),
        ("modelled", "t4", "host"),
        ("modelled", "a100-pcie", "host"),  # as it is sold without a bridge
        ("analytic", "a100", "nvlink"),
        ("analytic", "t4", "pcie"),
        ("flat", "t4", "pcie"),
    ],
)
def test_cost_models_tell_the_way_between_gpus(costs: str, gpu: str, way: PeerWay) -> None:
    assert cost_model(costs, gpu).peer_way == way


@pytest.mark.parametrize(
    ("gpu", "text", "said"),
    [
        ("a100", "x = Placeholder() @g0 {dtype=float}\nA = Neg(x) @g1", ", NVLink 3 between GPUs"),
        ("a100", "x = Placeholder() @g0 {dtype=float}\nA = Neg(x) @g0", ""),
        ("a100", "x = Placeholder() @c {dtype=float}\nA = Neg(x) @g1", ""),
        ("t4", "x = Placeholder() @g0 {dtype=float}\nA = Neg(x) @g1", ""),  # over the PCIe that is named anyway
    ],
)
def test_costs_name_the_links_between_gpus_where_they_are_used(gpu: str, text: str, said: str) -> None:
    model = cost_model("modelled", gpu)
    assert simulated(text, (), model).estimated.costs == model.name + said


def test_flat_costs_share_nothing() -> None:
    done = simulated(BOTH_FROM_HOST, (switch("switch", 0, 1),), FlatCosts())
    assert [span.duration for span in done.trace.spans if span.kind == "copy"] == [1_000_000] * 2
    assert [(use.copies, use.busy, use.slowdown) for use in done.shared_links] == [(2, 0, 1.0)]

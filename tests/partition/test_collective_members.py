"""Collectives: members joined by their keys, bytes and participants; sums and concatenations that go back to all."""

from __future__ import annotations

import pytest

from simplace.partition.copies import find_communication
from simplace.partition.traffic import Traffic, Volume
from simplace.placement.placement import Placement
from tests.executor.worlds import placed
from tests.partition.collective_worlds import INPUTS, SHARED, member, scalar
from tests.worlds import node, place


def shown(placement: Placement) -> list[str]:
    """Write each collective in a line: kind, members, participants, bytes, copies."""
    graph = placement.graph
    return [
        f"{one.kind} {' '.join(graph.names[i] for i in one.members)} of {one.participants}, {one.size} B"
        + (f", {len(one.copies)} copies" if one.copies else "")
        for one in find_communication(placement.placed).collectives
    ]


def test_members_with_one_instance_key_are_one_collective() -> None:
    keys = [scalar("k1", 7), scalar("k2", 8)]
    members = [member("b0", "x0", 0, "k2"), member("a1", "x1", 1, "k1"), member("a0", "x0", 0, "k1"),
               member("b1", "x1", 1, "k2")]  # fmt: skip
    assert shown(place(*SHARED, *keys, *INPUTS, *members)) == [
        "all-reduce b0 b1 of 2, 48 B",
        "all-reduce a0 a1 of 2, 48 B",
    ]


def test_members_whose_keys_only_a_run_knows_go_by_their_place() -> None:
    keys = [node(f"k{i}", "Placeholder", dtype="DT_INT32") for i in range(4)]
    members = [member("a0", "x0", 0, "k0"), member("b0", "x0", 0, "k1"), member("a1", "x1", 1, "k2"),
               member("b1", "x1", 1, "k3")]  # fmt: skip
    assert shown(place(*SHARED, *keys, *INPUTS, *members)) == [
        "all-reduce a0 a1 of 2, 48 B",
        "all-reduce b0 b1 of 2, 48 B",
    ]


def test_a_gather_is_not_a_reduction_and_may_have_members_elsewhere() -> None:
    keys = [scalar("k1", 7), scalar("four", 4)]
    members = [member("a0", "x0", 0, "k1"), member("a1", "x1", 1, "k1"),
               member("g0", "x0", 0, "k1", "CollectiveGatherV2", "four"),
               member("g1", "x1", 1, "k1", "CollectiveGatherV2", "four")]  # fmt: skip
    assert shown(place(*SHARED, *keys, *INPUTS, *members)) == [
        "all-reduce a0 a1 of 2, 48 B",
        "all-gather g0 g1 of 4, 48 B",
    ]


def test_nccl_ops_go_by_their_shared_name() -> None:
    text = """
        x = Placeholder() @g0 {dtype=float, shape=shape}
        y = Placeholder() @g1 {dtype=float, shape=shape}
        a0 = NcclAllReduce(x) @g0 {num_devices=2, reduction=b"sum", shared_name=b"c0", T=float}
        b0 = NcclAllReduce(x) @g0 {num_devices=2, reduction=b"sum", shared_name=b"c1", T=float}
        b1 = NcclAllReduce(y) @g1 {num_devices=2, reduction=b"sum", shared_name=b"c1", T=float}
        a1 = NcclAllReduce(y) @g1 {num_devices=2, reduction=b"sum", shared_name=b"c0", T=float}
    """
    assert shown(placed(text)) == ["all-reduce a0 a1 of 2, 8 B", "all-reduce b0 b1 of 2, 8 B"]


def test_what_nccl_makes_of_a_reduction_is_one_collective_of_that_node() -> None:
    text = """
        x = Placeholder() @g0 {dtype=float, shape=shape}
        y = Placeholder() @g1 {dtype=float, shape=shape}
        sum = NcclReduce(x, y) @g1 {num_devices=2, reduction=b"sum"}
        A = Neg(sum) @g1
    """
    assert shown(placed(text)) == ["reduce sum of 2, 8 B"]


SUM = """
    x = Placeholder() @g0 {dtype=float, shape=shape}
    y = Placeholder() @g1 {dtype=float, shape=shape}
    sum = AddN(x, y) @g0 {N=2}
    A = Neg(sum) @g0
    B = Identity(sum) @g1
    C = Neg(B) @g1
"""


def test_a_sum_that_goes_back_to_all_is_an_all_reduce_by_copies() -> None:
    placement = placed(SUM)
    assert shown(placement) == ["all-reduce sum of 2, 8 B, 2 copies"]
    traffic = find_communication(placement.placed).traffic
    assert (traffic.copies, traffic.control_signals, traffic.memory_copies) == (Volume(2, 8, 1), 0, Volume(0, 0, 0))
    assert [(one.is_copied, one.copies, one.volume) for one in traffic.collectives] == [(True, 2, Volume(1, 8, 0))]


@pytest.mark.parametrize(
    "text",
    [
        SUM.replace("B = Identity(sum) @g1\n    C = Neg(B) @g1", ""),  # stays where it is made
        SUM.replace("y = Placeholder() @g1", "y = Placeholder() @g0"),  # both parts are of one device
    ],
)
def test_a_sum_that_does_not_join_all_devices_is_none(text: str) -> None:
    assert shown(placed(text)) == []


def test_a_mean_in_two_groups_is_one_all_reduce() -> None:
    text = """
        x = Placeholder() @g0 {dtype=float, shape=shape}
        y = Placeholder() @g1 {dtype=float, shape=shape}
        z = Placeholder() @c {dtype=float, shape=shape}
        half = AddN(x, y) @g0 {N=2}
        sum = AddN(half, z) @c {N=2}
        n = Placeholder() @c {dtype=float}
        mean = RealDiv(sum, n) @c
        A = Neg(mean) @c
        B = Neg(mean) @g0
        C = Neg(mean) @g1
    """
    assert shown(placed(text)) == ["all-reduce sum of 3, 8 B, 4 copies"]


def test_sums_that_share_sums_are_walked_once() -> None:
    layers = [
        f"s{layer}{i} = AddN(s{layer - 1}0, s{layer - 1}1) @g{i} {{N=2}}" for layer in range(1, 60) for i in (0, 1)
    ]
    first = "s00 = Placeholder() @g0 {dtype=float}\ns01 = Placeholder() @g1 {dtype=float}\n"
    assert shown(placed(first + "\n".join(layers))) == [f"all-reduce s1{i} of 2, None B, 2 copies" for i in (0, 1)]


def test_a_graph_that_sends_nothing_counts_nothing() -> None:
    none = Volume(0, 0, 0)
    assert find_communication(place(*INPUTS).placed).traffic == Traffic(none, none, 0, ())

"""Which collectives of a graph lack members."""

from __future__ import annotations

from simplace.explain.failures import find_failures, format_failure
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import GraphDef, NodeDef, TensorInfo
from simplace.pipeline import place_program
from simplace.program.program import Program
from tests.lowering.worlds import DEVICES, TABLE, nodes

REDUCE = "{T=float, merge_op=b'Add', final_op=b'Id', Nordering_token=0}"


def number(name: str, value: int) -> NodeDef:
    attrs = {"dtype": DataType.DT_INT32, "value": TensorInfo(DataType.DT_INT32, (), value)}
    return NodeDef(name, "Const", "", (), attrs)


def failures(text: str) -> list[str]:
    graph = GraphDef((number("two", 2), number("key", 1), number("other", 5), *nodes(text)), {})
    placement = place_program(Program("p", "session", graph), DEVICES, TABLE)
    return [format_failure(one) for one in find_failures(placement)]


def test_a_member_without_a_partner_waits_for_ever() -> None:
    text = f"""
    x = Placeholder() {{dtype=float}}
    r = CollectiveReduceV2(x, two, key, key) @/device:GPU:0 {REDUCE}
    """
    assert failures(text) == ["CollectiveReduceV2 waits forever: its group has 2 members, and the program has 1"]


def two_members(second_key: str, after: str = "") -> str:
    return f"""
    x = Placeholder() {{dtype=float}}
    r = CollectiveReduceV2(x, two, key, key) @/device:GPU:0 {REDUCE}
    s = CollectiveReduceV2(x, two, key, {second_key}{after}) @/device:GPU:1 {REDUCE}
    """


def test_two_members_are_a_group_and_two_instances_are_none() -> None:
    assert failures(two_members("key")) == []
    assert len(failures(two_members("other"))) == 2


def test_members_that_run_one_after_another_wait_for_ever() -> None:
    assert failures(two_members("key", ", ^r")) == [
        "CollectiveReduceV2 waits forever: its group has 2 members, and one waits for another's end"
    ]


def test_a_key_that_is_no_constant_is_not_judged() -> None:
    text = f"""
    x = Placeholder() {{dtype=float}}
    k = Placeholder() {{dtype=int32}}
    r = CollectiveReduceV2(x, two, key, k) @/device:GPU:0 {REDUCE}
    """
    assert failures(text) == []


def test_nccl_members_share_a_name() -> None:
    one = "r{0} = NcclAllReduce(x) @/device:GPU:{0} {{T=float, reduction=b'sum', num_devices=2, shared_name=b'c'}}"
    first = "x = Placeholder() {dtype=float}\n" + one.format(0)
    assert len(failures(first)) == 1
    assert failures(f"{first}\n{one.format(1)}") == []

"""NCCL's reduce and broadcast: one op a device, and no copies between them."""

from __future__ import annotations

from simplace.partition.copies import list_copies
from simplace.partition.rewrite_graph import rewrite_placed_graph
from tests.executor.worlds import placed

REDUCE = """
    x = Placeholder() @g0 {dtype=float}
    y = Placeholder() @g1 {dtype=float}
    sum = NcclReduce(x, y, ^p) @g1 {num_devices=2, reduction=b"sum"}
    p = NoOp() @g1
    A = Neg(sum) @g1
"""
BROADCAST = """
    x = Placeholder() @g0 {dtype=float}
    all = NcclBroadcast(x, ^p) @g0 {shape=shape}
    p = NoOp() @g0
    A = Neg(all) @g0
    B = Neg(all) @g1
"""


def shown(text: str) -> str:
    return str(rewrite_placed_graph(placed(text).placed).placed.graph)


def test_a_reduction_sends_from_each_other_device() -> None:
    assert (
        shown(REDUCE)
        == """\
x = Placeholder()
y = Placeholder()
p = NoOp()
A = Neg(sumRecv, ^sumSend_1)
sumSend_1 = _NcclReduceSend(x, ^p)
sumRecv = _NcclReduceRecv(y, ^p)"""
    )
    assert [(c.tensor, c.source[-5:], c.target[-5:]) for c in list_copies(placed(REDUCE).placed)] == [
        ("^sumSend_1", "GPU:0", "GPU:1"), ("^p", "GPU:1", "GPU:0"),
    ]  # fmt: skip


def test_a_reduction_that_tensorflow_refuses_stays() -> None:
    assert "sum = NcclReduce(x, y, ^p)" in shown(REDUCE.replace("y = Placeholder() @g1", "y = Placeholder() @g0"))


def test_a_broadcast_receives_on_each_other_device() -> None:
    assert (
        shown(BROADCAST)
        == """\
x = Placeholder()
p = NoOp()
A = Neg(x, ^allSend)
B = Neg(allRecv_1)
allSend = _NcclBroadcastSend(x, ^p)
allRecv_1 = _NcclBroadcastRecv(x/Shape1)
x/Shape1 = Const()"""
    )
    assert list_copies(placed(BROADCAST).placed) == []


def test_a_broadcast_to_its_own_device_goes() -> None:
    assert shown(BROADCAST.replace("@g1", "@g0")).endswith("A = Neg(x)\nB = Neg(x)")

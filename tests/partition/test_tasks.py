"""A session's graph on a cluster: cut by task first, then each part by device."""

from __future__ import annotations

from simplace.devices.device_set import seen_from_the_first
from simplace.partition.copies import list_copies
from simplace.partition.graph_partition import partition_graph
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from tests.lowering.worlds import TABLE, session_program

NAMES = ("ps/0/CPU:0", "worker/0/CPU:0", "worker/0/GPU:0", "worker/0/GPU:1")


def full(short: str) -> str:
    job, task, device = short.split("/")
    return f"/job:{job}/replica:0/task:{task}/device:{device}"


CLUSTER = seen_from_the_first(map(full, NAMES))


def placed(text: str) -> Placement:
    """Place a session's graph; @p is the parameter server, @c, @g0 and @g1 are the worker's devices."""
    for short, name in zip(("@p", "@c", "@g0", "@g1"), NAMES, strict=True):
        text = text.replace(short, f"@{full(name)}")
    placement = place_program(session_program(text), CLUSTER, TABLE)
    assert placement.refusal is None, placement.refusal
    return placement


def cut(text: str) -> str:
    shown = str(partition_graph(placed(text).placed))
    for short in NAMES:
        shown = shown.replace(full(short), short)
    return shown


def test_a_tensor_is_sent_once_to_a_task_and_from_there_on() -> None:
    assert (
        cut("""
            x = Placeholder() @p {dtype=float}
            A = Neg(x) @g1
            B = Neg(x) @g0
            C = Neg(x) @c
        """)
        == """\
ps/0/CPU:0:
  x = Placeholder(^_SOURCE)
  x:0/_send_0 = _Send(x)
  x:0/_send_1 = _Send(x)
  _SOURCE = NoOp()
worker/0/CPU:0:
  x:0/_recv_1 = _Recv(^_SOURCE)
  C = Neg(x:0/_recv_1)
  _SOURCE = NoOp()
worker/0/GPU:0:
  B = Neg(x:0/_recv_2)
  x:0/_recv_2 = _Recv(^_SOURCE)
  _SOURCE = NoOp()
worker/0/GPU:1:
  x:0/_recv_0 = _Recv(^_SOURCE)
  A = Neg(x:0/_recv_0)
  x:0/_send_2 = _Send(x:0/_recv_0)
  _SOURCE = NoOp()"""
    )


def test_the_order_of_a_control_edge_is_sent_on_too() -> None:
    shown = cut("""
        x = Placeholder() @p {dtype=float}
        y = Placeholder() @g1 {dtype=float}
        z = Placeholder() @g0 {dtype=float}
        A = Neg(y, ^x) @g1
        B = Neg(z, ^x) @g0
    """)
    assert "  x/_order = Const(^x)\n  ^x/_send_0 = _Send(x/_order)" in shown
    assert "  ^x/_recv_0/_order = Const(^^x/_recv_0)\n  ^x/_send_1 = _Send(^x/_recv_0/_order)" in shown
    assert "  B = Neg(z, ^^x/_recv_1)" in shown


def test_a_received_reference_waits_for_inputs_on_other_devices() -> None:
    shown = cut("""
        v = VariableV2() @p {dtype=float, shape=shape}
        y = Placeholder() @g1 {dtype=float}
        A = Mul(v, y) @g0
    """)
    assert "  v:0/_recv_0 = _Recv(^^y/_recv_1)" in shown
    assert "  A = Mul(v:0/_recv_0, y:0/_recv_2)" in shown


def test_each_device_of_a_loop_hears_of_its_iterations() -> None:
    shown = cut("""
        x = Placeholder() @p {dtype=float}
        enter = Enter(x) @p {frame_name=b'f'}
        merge = Merge(enter, next) @p {N=2}
        test = IsFinite(merge) @p
        cond = LoopCond(test) @p
        switch = Switch(merge, cond) @p
        A = Neg(switch:1) @g0
        B = Neg(switch:1) @g1
        C = AddV2(A, B) @p
        next = NextIteration(C) @p
    """)
    lines = [line.strip() for line in shown.splitlines()]
    waits = {line.split(" ")[0]: line for line in lines if "= _Recv(" in line and "switch" in line}
    assert len(waits) == 2, shown
    assert all("^_cloop" in line for line in waits.values()), waits


def test_copies_are_told_in_the_terms_of_the_placed_graph() -> None:
    placement = placed("""
        x = Placeholder() @p {dtype=float, shape=shape}
        A = Neg(x) @g1
        B = Neg(x) @g0
    """)
    names = placement.graph.names
    found = [
        (c.tensor, c.source, c.target, [names[i] for i in c.consumers], c.size) for c in list_copies(placement.placed)
    ]
    assert found == [
        ("x:0", full("ps/0/CPU:0"), full("worker/0/GPU:1"), ["A"], 8),
        ("x:0", full("worker/0/GPU:1"), full("worker/0/GPU:0"), ["B"], 8),
    ]

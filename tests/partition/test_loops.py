"""Loops and branches on several devices: what moves to its neighbour, what tells a device of an iteration."""

from __future__ import annotations

from simplace.partition.copies import list_copies
from simplace.partition.rewrite_graph import rewrite_placed_graph
from simplace.placement.placement import Placement
from tests.executor.worlds import parts, placed

LOOP = """
    zero = Const() @c {dtype=float}
    enter = Enter(zero) @c {frame_name=b"loop"}
    merge = Merge(enter, next) @c {N=2}
    p = Placeholder() @c {dtype=bool}
    enterp = Enter(p) @c {T=bool, frame_name=b"loop", is_constant=True}
    cond = LoopCond(enterp) @c
    switch = Switch(merge, cond) @c
    exit = Exit(switch) @c
    B = Neg(switch:1) @g0
    next = NextIteration(B) @c
"""


def shown(placement: Placement) -> list[str]:
    names = placement.graph.names
    return [
        f"{c.tensor} {c.source[-5:]} {c.target[-5:]} {[names[i] for i in c.consumers]}"
        for c in list_copies(placement.placed)
    ]


def devices(placement: Placement) -> dict[str, str]:
    rewritten = rewrite_placed_graph(placement.placed).placed
    return {node.name: node.device[-5:] for node in rewritten.nodes}


def test_a_switch_is_where_its_data_is() -> None:
    placement = placed("""
        x = Placeholder() @g0 {dtype=float}
        p = Placeholder() @c {dtype=bool}
        switch = Switch(x, p) @c
        A = Neg(switch:1) @g0
        B = Neg(switch) @g1
    """)
    assert devices(placement)["switch"] == "GPU:0"
    assert shown(placement) == ["p:0 CPU:0 GPU:0 ['switch']", "switch:0 GPU:0 GPU:1 ['B']"]
    assert placement.node(placement.graph.ids["switch"]).device.endswith("CPU:0"), "what the log says stays"


def test_enter_and_next_iteration_go_to_their_first_consumer() -> None:
    placement = placed(LOOP.replace("next = NextIteration(B) @c", "next = NextIteration(B) @g0")
                           .replace("enter = Enter(zero) @c", "enter = Enter(zero) @g1"))  # fmt: skip
    found = devices(placement)
    assert (found["enter"], found["next"], found["merge"]) == ("CPU:0", "CPU:0", "CPU:0")


def test_each_device_of_a_loop_has_a_control_loop() -> None:
    text = str(parts(LOOP)).replace("/job:localhost/replica:0/task:0/device:", "")
    assert (
        text[text.index("GPU:0:") :]
        == """\
GPU:0:
  B = Neg(switch:1/_recv_0)
  switch:1/_recv_0 = _Recv(^_cloopB/_2)
  B:0/_send_1 = _Send(B)
  _cloopB/_1 = Enter(B/_5)
  _cloopB/_2 = Merge(_cloopB/_1, _cloopB/_4)
  _cloopB/_3 = Switch(_cloopB/_2, cond:0/_recv_2)
  cond:0/_recv_2 = _HostRecv(^_cloopB/_2)
  _cloopB/_4 = NextIteration(_cloopB/_3:1)
  B/_5 = Const(^_SOURCE)
  _SOURCE = NoOp()"""
    )


def test_the_condition_of_a_loop_is_sent_to_its_devices() -> None:
    assert shown(placed(LOOP)) == [
        "switch:1 CPU:0 GPU:0 ['B']", "B:0 GPU:0 CPU:0 ['next']", "cond:0 CPU:0 GPU:0 ['B']",
    ]  # fmt: skip


def test_a_loop_on_one_device_is_left_alone() -> None:
    placement = placed(LOOP.replace("@g0", "@c") + "R = Neg(exit) @g0")
    assert rewrite_placed_graph(placement.placed).loop_merges == frozenset()
    assert shown(placement) == ["exit:0 CPU:0 GPU:0 ['R']"]


def test_the_control_loop_of_an_inner_loop_hangs_on_that_of_the_outer() -> None:
    placement = placed("""
        zero = Const() @c {dtype=float}
        p = Placeholder() @c {dtype=bool}
        enter = Enter(zero) @c {frame_name=b"outer"}
        enterp = Enter(p) @c {T=bool, frame_name=b"outer", is_constant=True}
        merge = Merge(enter, next) @c {N=2}
        cond = LoopCond(enterp) @c
        switch = Switch(merge, cond) @c
        enter2 = Enter(switch:1) @c {frame_name=b"inner"}
        enterp2 = Enter(enterp) @c {T=bool, frame_name=b"inner", is_constant=True}
        merge2 = Merge(enter2, next2) @c {N=2}
        cond2 = LoopCond(enterp2) @c
        switch2 = Switch(merge2, cond2) @c
        B = Neg(switch2:1) @g0
        next2 = NextIteration(B) @c
        exit2 = Exit(switch2) @c
        next = NextIteration(exit2) @c
        exit = Exit(switch) @c
    """)
    graph = rewrite_placed_graph(placement.placed).placed.graph
    on_gpu = [line for line in str(graph).splitlines() if line.startswith(("_cloopB", "B/"))]
    assert on_gpu == [
        "_cloopB/_1 = Enter(_cloopB/_6)",
        "_cloopB/_2 = Merge(_cloopB/_1, _cloopB/_4)",
        "_cloopB/_3 = Switch(_cloopB/_2, cond2, ^_cloopB/_2)",
        "_cloopB/_4 = NextIteration(_cloopB/_3:1)",
        "_cloopB/_5 = Enter(B/_9)",
        "_cloopB/_6 = Merge(_cloopB/_5, _cloopB/_8)",
        "_cloopB/_7 = Switch(_cloopB/_6, cond, ^_cloopB/_6)",
        "_cloopB/_8 = NextIteration(_cloopB/_7:1)",
        "B/_9 = Const()",
    ]

"""The cut into subgraphs: sends, receives, order of edges, cycles."""

import pytest

from simplace.errors import SimplaceError
from tests.executor.worlds import parts


def text(graph: str) -> str:
    return str(parts(graph)).replace("/job:localhost/replica:0/task:0/device:", "")


def test_consumers_on_one_device_share_a_receive() -> None:
    shown = text("""
        x = Placeholder() @c {dtype=float}
        A = Neg(x) @g0
        B = Neg(x) @g0
        C = Neg(x) @g1
    """)
    assert (
        shown
        == """\
CPU:0:
  x = Placeholder(^_SOURCE)
  x:0/_send_0 = _Send(x)
  x:0/_send_1 = _Send(x)
  _SOURCE = NoOp()
GPU:0:
  A = Neg(x:0/_recv_0)
  x:0/_recv_0 = _Recv(^_SOURCE)
  B = Neg(x:0/_recv_0)
  _SOURCE = NoOp()
GPU:1:
  C = Neg(x:0/_recv_1)
  x:0/_recv_1 = _Recv(^_SOURCE)
  _SOURCE = NoOp()"""
    )


def test_a_reference_is_sent_to_each_reader_after_its_other_inputs() -> None:
    shown = text("""
        v = VariableV2() @c {dtype=float, shape=shape}
        y = Placeholder() @g0 {dtype=float}
        A = Mul(v, y) @g0
        B = Neg(v) @g0
    """)
    assert (
        shown[shown.index("GPU:0:") :]
        == """\
GPU:0:
  y = Placeholder(^_SOURCE)
  A = Mul(v:0/_recv_0, y)
  v:0/_recv_0 = _Recv(^y)
  B = Neg(v:0/_recv_1)
  v:0/_recv_1 = _Recv(^_SOURCE)
  _SOURCE = NoOp()"""
    )


def test_control_edge_across_devices_sends_a_constant() -> None:
    shown = text("""
        x = Placeholder() @c {dtype=float}
        y = Placeholder() @g0 {dtype=float}
        A = Neg(y, ^x) @g0
    """)
    assert "  x/_order = Const(^x)\n  ^x/_send_0 = _Send(x/_order)" in shown
    assert "  A = Neg(y, ^^x/_recv_0)" in shown


def test_successors_come_data_edges_first() -> None:
    graph = parts("""
        x = Placeholder() @c {dtype=float}
        A = NoOp(^x) @c
        B = Neg(x) @c
        C = NoOp(^x) @c
        D = Neg(x) @c
    """)
    x = next(i for i, node in enumerate(graph.nodes) if node.name == "x")
    assert [graph.nodes[edge.dst].name for edge in graph.outs[x]] == ["B", "D", "A", "C"]


def test_receive_in_a_loop_hangs_on_no_source() -> None:
    graph = parts("""
        zero = Const() @c {dtype=float}
        enter = Enter(zero) @c {frame_name=b"loop"}
        merge = Merge(enter, next) @c {N=2}
        p = Placeholder() @c {dtype=bool}
        cond = LoopCond(p) @c
        switch = Switch(merge, cond) @c
        exit = Exit(switch) @c
        B = Neg(switch:1) @g0
        next = NextIteration(B) @c
        R = Neg(exit) @g0
    """)
    from_source = {edge.dst for source in graph.sources for edge in graph.outs[source]}
    receives = {node.name: i in from_source for i, node in enumerate(graph.nodes) if node.role == "recv"}
    assert receives == {"switch:1/_recv_0": False, "B:0/_recv_1": False, "exit:0/_recv_2": True}


def test_cycle_outside_a_loop_is_named() -> None:
    with pytest.raises(SimplaceError, match="3 nodes are in a cycle, among them 'A'"):
        parts("""
            x = Placeholder() @c {dtype=float}
            A = AddV2(x, B) @c
            B = Neg(A) @c
            C = Neg(B) @c
        """)

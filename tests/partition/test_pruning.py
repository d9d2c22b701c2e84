"""The part of a session's graph that one run needs."""

from __future__ import annotations

import pytest

from simplace.errors import NodeNotFoundError
from simplace.partition.session_subgraph import rewrite_for_run
from simplace.program.program import SessionRun
from tests.executor.worlds import placed

WORLD = """
    x = Placeholder() @g0 {dtype=float}
    w = Const() @c {dtype=float}
    A = Mul(x, w) @g0
    B = Neg(A) @g1
    C = Neg(w, ^x) @c
"""


def shown(run: SessionRun) -> str:
    return str(rewrite_for_run(placed(WORLD).placed, run).placed.graph)


def test_what_is_fetched_goes_to_a_result_on_the_first_cpu() -> None:
    pruned = rewrite_for_run(placed(WORLD).placed, SessionRun(fetches=("A:0",)))
    assert str(pruned.placed.graph).splitlines()[-1] == "_retval_A_0_0 = _Retval(A)"
    assert pruned.placed.nodes[-1].device.endswith("CPU:0")
    assert pruned.origin == (0, 1, 2, 3, 4, -1)


def test_a_target_needs_no_result() -> None:
    assert [line.split(" ")[0] for line in shown(SessionRun(targets=("B",))).splitlines()] == ["x", "w", "A", "B"]


def test_what_is_fed_comes_from_an_argument_with_its_control_edges() -> None:
    assert (
        shown(SessionRun(feeds=("x:0",), targets=("A", "C")))
        == """\
w = Const()
A = Mul(_arg_x_0_0, w)
C = Neg(w, ^_arg_x_0_0)
_arg_x_0_0 = _Arg()"""
    )


def test_control_edges_of_a_fed_op_that_is_no_placeholder_stay() -> None:
    assert "C = Neg(_arg_w_0_0, ^x)" in shown(SessionRun(feeds=("w:0",), targets=("C",)))


def test_what_is_fed_and_fetched_by_rendezvous_is_received_and_sent() -> None:
    run = SessionRun(feeds=("x:0",), fetches=("A:0",), by_rendezvous=True)
    assert shown(run).splitlines() == [
        "w = Const()", "A = Mul(_recv_x_0, w)", "_recv_x_0 = _Recv()", "_send_A_0 = _Send(A)",
    ]  # fmt: skip


def test_a_callable_may_name_devices() -> None:
    gpu = "/job:localhost/replica:0/task:0/device:GPU:1"
    run = SessionRun(("x:0",), ("A:0",), feed_devices=(("x:0", gpu),), fetch_devices=(("A:0", gpu),))
    assert [node.device for node in rewrite_for_run(placed(WORLD).placed, run).placed.nodes if node.name[0] == "_"] == [
        gpu,
        gpu,
    ]


def test_a_tensor_may_take_the_place_of_another_one() -> None:
    run = SessionRun(targets=("B",), connections=(("w:0", "A:0"),))
    assert shown(run).splitlines() == ["w = Const()", "B = Neg(_identity_A_0)", "_identity_A_0 = Identity(w)"]
    (made,) = [node for node in rewrite_for_run(placed(WORLD).placed, run).placed.nodes if node.name == "_identity_A_0"]
    assert made.device.endswith("GPU:0")


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(NodeNotFoundError, match="has no node 'y'"):
        shown(SessionRun(feeds=("y:0",)))

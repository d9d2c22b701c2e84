"""A session's graph cut down to one run."""

from dataclasses import replace

import pytest

from simplace.errors import TargetError
from simplace.program.program import SessionRun
from tests.lowering.worlds import CPU0, GPU0, GPU1, prepared, session_program

GRAPH = """
    x = Placeholder() {dtype=float}
    k = Const(^x) {dtype=float}
    y = AddV2(x, k)
    z = Relu(y)
    other = Relu(x)
"""


def pruned(*run):
    return prepared(replace(session_program(GRAPH), pruned_to=SessionRun(*run)))


def test_feeds_and_fetches_become_arguments_and_results():
    graph = pruned(("x:0",), ("y:0",))
    assert graph.names[2:] == ["k", "y", "_arg_x_0_0", "_retval_y_0_0"]
    assert graph.assigned[2:] == ["", "", CPU0, CPU0]


def test_a_target_is_run_without_a_result():
    assert pruned((), (), ("z",)).names[2:] == ["x", "k", "y", "z"]


def test_what_a_fed_tensor_was_made_of_is_not_needed():
    assert pruned(("y:0",), ("z:0",)).names[2:] == ["z", "_arg_y_0_0", "_retval_z_0_0"]


def test_a_partial_run_receives_and_sends():
    run = SessionRun(("x:0",), ("y:0",), by_rendezvous=True)
    graph = prepared(replace(session_program(GRAPH), pruned_to=run))
    assert list(zip(graph.names, graph.ops, graph.assigned, strict=True))[-2:] == [
        ("_recv_x_0", "_Recv", CPU0), ("_send_y_0", "_Send", CPU0),
    ]  # fmt: skip


def test_a_callable_may_name_devices():
    run = SessionRun(("x:0",), ("y:0",), feed_devices=(("x:0", GPU0),), fetch_devices=(("y:0", GPU1),))
    graph = prepared(replace(session_program(GRAPH), pruned_to=run))
    assert graph.assigned[-2:] == [GPU0, GPU1]


def test_a_tensor_may_take_the_place_of_another_one():
    run = SessionRun(fetches=("z:0",), connections=(("k:0", "y:0"),))
    graph = prepared(replace(session_program(GRAPH), pruned_to=run))
    assert str(graph).splitlines()[-3:] == [
        "z = Relu(_identity_y_0)", "_identity_y_0 = Identity(k)", f"_retval_z_0_0 = _Retval(z) !{CPU0}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("run", "line"),
    [
        ((("a:0",), ("y:0",)), "the run names 'a', but the graph has no node of that name"),
        (((), ("y:1",)), "the run names 'y:1', but 'y' has 1 outputs"),
        (((), (), ("q",)), "the run names 'q'"),
    ],
)
def test_a_run_of_another_graph_is_refused(run, line):
    with pytest.raises(TargetError, match=line):
        pruned(*run)

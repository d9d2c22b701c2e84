"""A session's graph cut down to one run."""

from dataclasses import replace

import pytest

from simplace.errors import TargetError
from simplace.importers.program import SessionRun
from tests.lowering.worlds import CPU0, prepared, session_program

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


@pytest.mark.parametrize(
    ("run", "line"),
    [
        ((("a:0",), ("y:0",)), "the run names 'a', but the graph has no node called so"),
        (((), ("y:1",)), "the run names 'y:1', but 'y' has 1 outputs"),
        (((), (), ("q",)), "the run names 'q'"),
    ],
)
def test_a_run_of_another_graph_is_refused(run, line):
    with pytest.raises(TargetError, match=line):
        pruned(*run)

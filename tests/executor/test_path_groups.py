"""The critical path by layer and by op type, and the decisions behind copies, on small worlds."""

from __future__ import annotations

from collections.abc import Iterable

from simplace.analysis.path_groups import PathShare, group_by_layer, group_by_op, rank_copy_causes
from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.program.program import NodeNotes
from tests.executor.worlds import MS, Costs
from tests.worlds import constant, node, place

FIRST, SECOND = "gradient_tape/encoder/dense/MatMul", "gradient_tape/up/MatMul"
NOTES = {
    "mm": NodeNotes("model.py:5", known_as="encoder/dense/MatMul"),
    "up": NodeNotes("model.py:6"),
    SECOND: NodeNotes("model.py:9"),
    FIRST: NodeNotes("model.py:9", known_as=FIRST),
    "sum": NodeNotes("model.py:9"),
}


def simulate() -> Schedule:
    """Simulate two layers, the first of Keras, their gradients, and a sum on the other GPU."""
    on = "/GPU:0"
    nodes = [
        constant("x", (4, 4), device=on),
        node("mm", "MatMul", "x", "x", device=on),
        node("up", "MatMul", "mm", "x", device=on),
        node(SECOND, "MatMul", "up", "x", device=on),
        node(FIRST, "MatMul", SECOND, "x", device=on),
        node("sum", "Neg", FIRST, device="/GPU:1"),
    ]
    times = {"mm": 1.0, "up": 2.0, SECOND: 3.0, FIRST: 4.0, "sum": 5.0}
    return schedule_placement(place(*nodes, notes=NOTES), costs=Costs(times, copies=6.0), inter_op=1)


def told(shares: Iterable[PathShare]) -> dict[str, float]:
    return {one.name: one.time / MS for one in shares}


def test_a_path_by_layer_has_gradients_apart_and_lines_where_no_layer_is_known() -> None:
    assert told(group_by_layer(simulate())) == {
        "gradient of encoder/dense": 4.0 + 6.0,  # with the copy of it
        "model.py:9": 5.0,
        "gradient of model.py:6": 3.0,
        "model.py:6": 2.0,
        "encoder/dense": 1.0,
    }


def test_a_path_by_op_type_adds_up_to_the_step() -> None:
    done = simulate()
    assert told(group_by_op(done)) == {"MatMul": 10.0, "copies": 6.0, "Neg": 5.0}
    assert sum(one.time for one in group_by_op(done)) == done.trace.makespan


def test_the_decision_behind_a_copy_has_its_time_on_the_path() -> None:
    (one,) = rank_copy_causes(simulate())
    assert (one.count, one.size, one.time) == (1, 0, 6 * MS)
    assert (one.cause.reason.rule, one.cause.source) == ("requested", "model.py:9")

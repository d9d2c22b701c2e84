"""Pairs of writes that nothing orders."""

from simplace.executor.unordered_writes import unordered_writes
from tests.executor.worlds import placed

VARIABLE = """
    v = VarHandleOp() @c {dtype=float, shape=shape}
    x = Placeholder() @c {dtype=float}
    a = AssignAddVariableOp(v, x) @c {dtype=float}
"""


def pairs(text: str) -> list[tuple[str, str, str]]:
    placement = placed(text)
    names = placement.graph.names
    return [(names[w.variable], names[w.first], names[w.second]) for w in unordered_writes(placement)]


def test_two_writes_without_order_are_found() -> None:
    assert pairs(VARIABLE + "b = AssignSubVariableOp(v, x) @c {dtype=float}") == [("v", "a", "b")]


def test_control_edge_orders_writes() -> None:
    assert pairs(VARIABLE + "b = AssignSubVariableOp(v, x, ^a) @c {dtype=float}") == []


def test_writes_of_two_variables_do_not_meet() -> None:
    more = "w = VarHandleOp() @c {dtype=float, shape=shape}\n b = AssignSubVariableOp(w, x) @c {dtype=float}"
    assert pairs(VARIABLE + more) == []

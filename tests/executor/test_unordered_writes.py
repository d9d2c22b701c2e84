"""Pairs of writes that nothing orders."""

import pytest

from simplace.analysis import unordered_writes as unordered
from simplace.analysis.unordered_writes import unordered_writes
from tests.executor.worlds import placed

VARIABLE = """
    v = VarHandleOp() @c {dtype=float, shape=shape}
    x = Placeholder() @c {dtype=float}
    a = AssignAddVariableOp(v, x) @c {dtype=float}
"""


def pairs(text: str) -> list[tuple[str, str, str]]:
    placement = placed(text)
    names = placement.graph.names
    return [(names[w.variable], names[w.first], names[w.second]) for w in unordered_writes(placement.placed)]


def test_two_writes_without_order_are_found() -> None:
    assert pairs(VARIABLE + "b = AssignSubVariableOp(v, x) @c {dtype=float}") == [("v", "a", "b")]


def test_control_edge_orders_writes() -> None:
    assert pairs(VARIABLE + "b = AssignSubVariableOp(v, x, ^a) @c {dtype=float}") == []


def test_writes_of_two_variables_do_not_meet() -> None:
    more = "w = VarHandleOp() @c {dtype=float, shape=shape}\n b = AssignSubVariableOp(w, x) @c {dtype=float}"
    assert pairs(VARIABLE + more) == []


@pytest.mark.parametrize("nearby", [0, 2, 256])
def test_order_is_found_through_other_ops_and_for_many_variables(monkeypatch: pytest.MonkeyPatch, nearby: int) -> None:
    monkeypatch.setattr(unordered, "_NEARBY", nearby)  # with none, all of the graph is walked
    lines = ["x = Placeholder() @c {dtype=float}"]
    for i in range(100):
        lines += [
            f"v{i} = VarHandleOp() @c {{dtype=float, shape=shape}}",
            f"a{i} = AssignAddVariableOp(v{i}, x) @c {{dtype=float}}",
            f"n{i} = NoOp(^a{i}) @c",
            f"b{i} = AssignSubVariableOp(v{i}, x, ^n{i}) @c {{dtype=float}}",
            f"c{i} = AssignSubVariableOp(v{i}, x, ^a{i}) @c {{dtype=float}}",
        ]
    assert sorted(pairs("\n".join(lines))) == sorted((f"v{i}", f"b{i}", f"c{i}") for i in range(100))


@pytest.mark.parametrize("nearby", [0, 256])
def test_a_write_in_a_loop_is_not_ordered_by_the_way_back(monkeypatch: pytest.MonkeyPatch, nearby: int) -> None:
    monkeypatch.setattr(unordered, "_NEARBY", nearby)
    loop = """
        v = VarHandleOp() @c {dtype=float, shape=shape}
        x = Placeholder() @c {dtype=float}
        p = Placeholder() @c {dtype=bool}
        e = Enter(x) @c {T=float, frame_name="loop"}
        m = Merge(e, n) @c {T=float, N=2}
        s = Switch(m, p) @c {T=float}
        a = AssignAddVariableOp(v, s:1) @c {dtype=float}
        n = NextIteration(s:1, ^a) @c {T=float}
        b = AssignSubVariableOp(v, s:1) @c {dtype=float}
    """
    assert pairs(loop) == [("v", "a", "b")]

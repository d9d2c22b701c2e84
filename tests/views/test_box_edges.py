"""What runs between boxes."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from simplace.partition.copies import list_copies
from simplace.views.figures.box_edges import box_edges, without_implied
from tests.worlds import constant, node, place

EDGES = st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda ends: ends[0] != ends[1]), max_size=30)


@given(EDGES)
def test_dropped_edges_leave_what_reaches_what(edges: set[tuple[int, int]]) -> None:
    kept = without_implied(dict.fromkeys(sorted(edges), 1), edges)
    before, after = nx.DiGraph(sorted(edges)), nx.DiGraph(sorted(kept))
    assert set(nx.transitive_closure(before, reflexive=None).edges) == set(
        nx.transitive_closure(after, reflexive=None).edges
    )


def test_copies_are_grouped_by_the_boxes_that_read_them() -> None:
    placement = place(
        constant("a", (4,), "/cpu:0"),
        constant("b", (4,), "/cpu:0"),
        node("x", "Add", "a", "b", device="/gpu:0"),
        node("y", "Neg", "a", device="/gpu:0"),
    )
    ids = placement.graph.ids
    box_of = {ids["a"]: 0, ids["b"]: 0, ids["x"]: 1, ids["y"]: 2}
    found = box_edges(placement, list_copies(placement.placed), box_of, frozenset(box_of))
    assert [(one.source, one.targets, [c.tensor for c in one.copies]) for one in found.transfers] == [
        (0, (1,), ["b:0"]), (0, (1, 2), ["a:0"]),
    ]  # fmt: skip
    assert (found.data, found.control) == ({}, {})


def test_control_edges_beside_data_are_not_counted() -> None:
    placement = place(constant("a", (4,)), node("x", "Neg", "a", "^a"), node("y", "Neg", "a", "^x"))
    ids = placement.graph.ids
    box_of = {ids["a"]: 0, ids["x"]: 1, ids["y"]: 2}
    found = box_edges(placement, [], box_of, frozenset(box_of))
    assert (found.data, found.control) == ({(0, 1): 1, (0, 2): 1}, {(1, 2): 1})

"""The decision behind a copy, and the order of decisions by what they cost."""

from __future__ import annotations

from simplace.explain import reasons as why
from simplace.explain.copy_causes import find_root_reason, group_copy_causes
from simplace.placement.placement import Placement
from simplace.result import Placed
from tests.worlds import constant, node, place


def caused(placement: Placement) -> list[tuple[str, str, list[str], int]]:
    """List (rule, node that decided, tensors copied, bytes)."""
    copies = Placed(placement).copies
    names = placement.graph.names
    return [
        (one.reason.rule, names[one.reason.node], [copies[i].tensor for i in one.copies], one.size)
        for one in group_copy_causes(placement, copies)
    ]


def test_a_request_causes_the_copy_to_it_not_the_default_before() -> None:
    placement = place(constant("a", (4,), "/gpu:0"), node("x", "Neg", "a"), node("y", "Exp", "x", device="/cpu:0"))
    assert caused(placement) == [("requested", "y", ["x:0"], 0)]


def test_of_two_requests_the_consumer_causes_the_copy() -> None:
    placement = place(constant("a", (4,), "/gpu:0"), node("x", "Neg", "a", device="/gpu:1"))
    assert caused(placement) == [("requested", "x", ["a:0"], 16)]


def test_a_missing_kernel_counts_before_a_request() -> None:
    placement = place(
        constant("a", (4,), "/gpu:0"),
        node("text", "AsString", "a", device="/gpu:0"),
        node("far", "Neg", "a", device="/gpu:1"),
    )
    assert caused(placement) == [("soft_fallback", "text", ["a:0"], 16), ("requested", "far", ["a:0"], 16)]


def test_decisions_are_ranked_by_bytes() -> None:
    placement = place(
        constant("small", (2,), "/cpu:0"),
        constant("large", (200,), "/cpu:0"),
        node("one", "Neg", "small", device="/gpu:0"),
        node("two", "Neg", "large", device="/gpu:1"),
    )
    assert caused(placement) == [("requested", "two", ["large:0"], 800), ("requested", "one", ["small:0"], 8)]


def test_one_request_of_many_nodes_is_one_decision_with_its_largest_copy_first() -> None:
    placement = place(
        constant("a", (2,), "/cpu:0"),
        constant("b", (3,), "/cpu:0"),
        node("x", "Neg", "a", device="/gpu:1"),
        node("y", "Neg", "b", device="/gpu:1"),
    )
    assert caused(placement) == [("requested", "x", ["b:0", "a:0"], 20)]


def test_a_follower_leads_back_to_the_node_that_decided() -> None:
    placement = place(
        node("v", "VarHandleOp", device="/gpu:1", extra='attr { key: "shape" value { shape { } } }'),
        node("v/read", "ReadVariableOp", "v"),
    )
    found = find_root_reason(placement, placement.graph.ids["v/read"])
    assert (type(found), placement.graph.names[found.node]) == (why.Requested, "v")

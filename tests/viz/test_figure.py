from __future__ import annotations

import pytest

from viz import Edge, Figure, FigureError, Group, Node


def test_accepts_figure_without_parts() -> None:
    assert str(Figure()) == "0 devices, 0 nodes, 0 edges"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"nodes": (Node("a", "a", group="GPU:9"),), "groups": (Group("GPU:0", "g"), Group("CPU:0", "c"))},
            "node 'a' is in group 'GPU:9', which the figure does not have; its groups: CPU:0, GPU:0",
        ),
        (
            {"nodes": (Node("a", "a"), Node("b", "b")), "edges": (Edge("a", "c"),)},
            "edge 'a' -> 'c' needs a node 'c'; the figure's nodes: a, b",
        ),
        (
            {"nodes": (Node("a", "a", kind="blob"),)},  # type: ignore[arg-type]
            "the kind of node 'a' is 'blob'; choose from: op, scope, argument, result, variable, copy, send, receive, "
            "part, collective",
        ),
        (
            {"nodes": (Node("a", "a"),), "edges": (Edge("a", "a", "wire"),)},  # type: ignore[arg-type]
            "the kind of edge 'a' -> 'a' is 'wire'; choose from: data, control, copy, tie, collective",
        ),
        ({"direction": "up"}, "the figure's direction is 'up'; choose from: auto, page, down, right"),
        ({"nodes": (Node("a", "a"), Node("a", "b"))}, "two nodes have the id 'a'; ids must differ"),
        ({"groups": (Group("a", "a"), Group("a", "b"))}, "two groups have the id 'a'; ids must differ"),
        ({"nodes": (Node("a", "a", count=0),)}, "node 'a' has count 0; a count is 1 or more"),
        (
            {"nodes": (Node("a", "a"),), "edges": (Edge("a", "a", back="8 B"),)},
            "edge 'a' -> 'a' says what travels back, '8 B', and not what travels",
        ),
        (
            {"nodes": tuple(Node(f"n{i:02}", "") for i in range(20)), "edges": (Edge("x", "n00"),)},
            "edge 'x' -> 'n00' needs a node 'x'; the figure's nodes: "
            "n00, n01, n02, n03, n04, n05, n06, n07, n08, n09, n10, n11 and 8 more",
        ),
    ],
)
def test_refuses_parts_that_do_not_fit(parts: dict[str, object], message: str) -> None:
    with pytest.raises(FigureError) as caught:
        Figure(**parts)  # type: ignore[arg-type]
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)

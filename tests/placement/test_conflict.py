"""The smallest clash behind a refusal, in data and in words."""

from simplace.explain.conflict import find_conflict
from simplace.explain.sentences import state_conflict, summarize_conflict
from simplace.program.program import NodeNotes
from tests.worlds import constant, node, place


def loc(name):
    return f'attr {{ key: "_class" value {{ list {{ s: "loc:@{name}" }} }} }}'


def names(placement):
    found = find_conflict(placement)
    return None if found is None else [placement.graph.names[constraint.node] for constraint in found.constraints]


def test_a_placed_graph_has_no_conflict():
    placement = place(constant("a", (2,)))
    assert (find_conflict(placement), summarize_conflict(placement)) == (None, "")


def test_one_node_that_asks_for_what_is_not_there():
    placement = place(constant("a", (2,), device="/GPU:7"), soft=False)
    assert tuple(map(str, state_conflict(placement))) == (
        "a (Const) requests /GPU:7.",
        "To fix it: request another device for a, or none; or turn soft placement on.",
    )
    assert summarize_conflict(placement) == "a requests GPU:7, which is not there"


def test_one_node_without_a_kernel_where_it_must_be():
    placement = place(constant("a", (2,)), node("text", "AsString", "a", device="/GPU:0"), soft=False)
    assert summarize_conflict(placement) == "text requests GPU:0 and has kernels for CPU only"


def test_two_nodes_of_a_long_chain():
    placement = place(
        constant("a", (2,), device="/CPU:0"),
        *[
            node(f"n{i}", "Neg", "a" if i == 0 else f"n{i - 1}", extra=loc("a" if i == 0 else f"n{i - 1}"))
            for i in range(9)
        ],
        node("last", "Neg", "n8", device="/GPU:1", extra=loc("n8")),
        soft=False,
        notes={"last": NodeNotes("model.py:7", "model.py:6")},
    )
    assert names(placement) == ["last", "a"]
    lines = tuple(map(str, state_conflict(placement)))
    assert lines[:2] == (
        "last (Neg) at model.py:7 requests /GPU:1 (by the line model.py:6).",
        "a (Const) requests /CPU:0.",
    )
    assert summarize_conflict(placement) == "last requests GPU:1, a requests CPU:0; they must share a device"
    assert len(lines) == 2 + 10 + 1, "two wishes, the ten joins between them, one remedy"


def test_a_request_against_a_member_without_a_kernel():
    placement = place(
        constant("a", (2,), device="/GPU:0"),
        node("text", "AsString", "a", extra=loc("a")),
        soft=False,
    )
    assert names(placement) in (["a", "text"], ["text", "a"])
    assert "text (AsString) has a kernel for CPU with T=float32." in tuple(map(str, state_conflict(placement)))


def test_soft_placement_leaves_only_what_cannot_move():
    placement = place(constant("a", (2,), device="/GPU:0"), node("text", "AsString", "a", extra=loc("a")), soft=True)
    assert placement.refusal is None

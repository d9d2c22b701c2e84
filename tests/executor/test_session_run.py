"""What a session's run keeps of a graph, and the order that only a run tells."""

from simplace.executor.session_run import ObservedOrder, prune_to_targets, with_observed_order
from simplace.partition.graph_partition import PartitionedGraph
from tests.executor.worlds import parts

GRAPH = """
x = Placeholder() @c {dtype=float}
a = Neg(x) @c
b = Neg(a) @c
c = Neg(a) @c
"""


def names(graph: PartitionedGraph) -> list[str]:
    return [node.name for node in graph.nodes if node.role == "op"]


def followers(graph: PartitionedGraph, name: str) -> list[str]:
    (node,) = (i for i, one in enumerate(graph.nodes) if one.name == name)
    return [graph.nodes[edge.dst].name for edge in graph.outs[node]]


def test_only_what_the_targets_need_is_kept() -> None:
    kept = prune_to_targets(parts(GRAPH), ["b"])
    assert names(kept) == ["x", "a", "b"]
    assert followers(kept, "a") == ["b"]
    assert len(kept.sources) == 1


def test_send_of_a_needed_receive_is_kept() -> None:
    kept = prune_to_targets(parts("x = Placeholder() @c {dtype=float}\n a = Neg(x) @g0\n b = Neg(x) @c"), ["a"])
    assert sorted({node.role for node in kept.nodes}) == ["op", "recv", "send", "source"]
    assert [kept.nodes[receive].role for receive in kept.receiver.values()] == ["recv"]
    assert names(kept) == ["x", "a"]


def test_graph_without_the_targets_stays_whole() -> None:
    assert len(prune_to_targets(parts(GRAPH), ["z"])) == len(parts(GRAPH))


def test_eight_edges_keep_their_order_and_nine_are_learnt() -> None:
    for count, expected in ((8, list(range(8))), (9, [8, 7, 6, 5, 4, 3, 2, 1, 0])):
        lines = ["x = Placeholder() @c {dtype=float}", *(f"n{i} = Neg(x) @c" for i in range(count))]
        order = ["x", *(f"n{i}" for i in reversed(range(count)))]
        observed = with_observed_order(parts("\n".join(lines)), ObservedOrder(order))
        assert followers(observed, "x") == [f"n{i}" for i in expected]


def test_one_edge_of_the_source_goes_to_the_sink() -> None:
    for count, expected in ((7, list(range(7))), (8, [7, 6, 5, 4, 3, 2, 1, 0])):
        graph = parts("\n".join(f"n{i} = Placeholder() @c {{dtype=float}}" for i in range(count)))
        order = ["_SOURCE", *(f"n{i}" for i in reversed(range(count)))]
        observed = with_observed_order(graph, ObservedOrder(order))
        (source,) = graph.sources
        assert followers(observed, graph.nodes[source].name) == [f"n{i}" for i in expected]


def test_what_another_input_made_ready_says_nothing_about_the_order_of_the_edges() -> None:
    lines = ["x = Placeholder() @c {dtype=float}", "y = Placeholder() @c {dtype=float}"]
    lines += [*(f"n{i} = Neg(x) @c" for i in range(8)), "late = Add(x, y) @c"]
    runs = [
        ["x", "n1", "n0", "n3", "y", "late"],  # y comes last here, and makes `late` ready
        ["y", "x", "n0", "late", "n3"],
        ["y", "x", "n1", "late", "n2", "n3", "n4", "n5", "n6", "n7"],
    ]
    order = ObservedOrder([name for run in runs for name in run])
    observed = with_observed_order(parts("\n".join(lines)), order)
    assert followers(observed, "x") == ["n1", "n0", "late", "n2", "n3", "n4", "n5", "n6", "n7"]


def test_an_end_of_the_iteration_before_is_not_taken_for_one_of_this_iteration() -> None:
    lines = ["x = Placeholder() @c {dtype=float}", *(f"n{i} = Neg(x) @c" for i in range(9))]
    ends = [f"n{i}" for i in range(9)]
    order = ["x", *ends[:8], "x", "n8", *ends]  # the first n8 goes with the first x
    observed = with_observed_order(parts("\n".join(lines)), ObservedOrder(order))
    assert followers(observed, "x") == ends


def test_a_second_order_tells_of_the_rest_unless_it_contradicts_the_first() -> None:
    lines = ["x = Placeholder() @c {dtype=float}", "y = Placeholder() @c {dtype=float}"]
    lines += [*(f"n{i} = Neg(x) @c" for i in range(8)), "late = Add(x, y) @c"]
    ends = [f"n{i}" for i in range(8)]
    first = ObservedOrder(["x", *ends, "y", "late"])
    graph = parts("\n".join(lines))
    for more, dispatched, expected in (
        (["y", "x", "n0", "late", "n1"], [], ["n0", "late", *ends[1:]]),
        (["y", "x", "n3", "late", "n2"], [], [*ends, "late"]),
        (["y", "x", "n0", "late", "n1"], ["late"], [*ends, "late"]),
    ):
        assert followers(with_observed_order(graph, first, ObservedOrder(more, dispatched)), "x") == expected

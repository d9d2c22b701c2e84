"""Which functions of datasets make the elements that a step is given: of its arguments, and in its graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from simplace.analysis.schedule import Schedule
from simplace.graph.dtypes import DataType
from simplace.graph.graph import Graph
from simplace.graph.node_def import FuncRef
from simplace.kernels.dataset_ops import calls_captured, makes_batches
from simplace.placement.placement import Placement
from simplace.program.program import Feed
from simplace.result import Result


def find_feeds(result: Result, schedule: Schedule) -> Mapping[str, bool]:
    """Map the functions of datasets that a step waits for, by full name, to whether batches of their results follow.

    They are those of the datasets that its arguments come from, those in what it runs of its graph, and what all these
    call for datasets within: a `flat_map` has a function that makes datasets itself.
    """
    within = defaultdict[str, list[Placement]](list)
    for placed in result.programs:
        if placed.placement.program.kind == "dataset":
            within[placed.placement.program.function or ""].append(placed.placement)
    graph = schedule.estimated.graph
    ran = {graph.node_of_program(node) for node in range(len(graph.nodes))} - {-1}
    waiting = [*schedule.placement.program.feeds, *_list_feeds(schedule.placement, ran)]
    found: dict[str, bool] = {}
    while waiting:
        feed = waiting.pop()
        if found.get(feed.function) in (True, feed.is_batched):
            continue
        found[feed.function] = feed.is_batched
        for placement in within[feed.function]:
            inner = _list_feeds(placement, placement.graph.op_ids)
            waiting += [Feed(one.function, one.is_batched or feed.is_batched) for one in inner]
    return found


def _list_feeds(placement: Placement, nodes: Iterable[int]) -> Iterator[Feed]:
    """List the functions of the datasets in a graph that some of its nodes get elements from."""
    graph, table = placement.graph, placement.groups.support.table
    seen: dict[int, bool] = {}
    waiting = [(node, False) for node in nodes]
    while waiting:
        node, is_batched = waiting.pop()
        if seen.get(node) in (True, is_batched):
            continue
        seen[node] = is_batched
        is_batched |= makes_batches(graph.ops[node])
        if calls_captured(table.op(graph.ops[node])):
            called = (value.name for value in graph.attrs[node].values() if isinstance(value, FuncRef))
            yield from (Feed(name, is_batched) for name in called)
        waiting += [(graph.edge_src[edge], is_batched) for edge in graph.data_in_edges(node)]
        waiting += [(user, is_batched) for user in _list_initializers(graph, node)]


def _list_initializers(graph: Graph, node: int) -> Iterator[int]:
    """List the nodes that give a dataset to what a node has a handle of, such as an iterator."""
    if DataType.DT_RESOURCE in graph.out_types[node]:
        for edge in graph.out_edges[node]:
            if DataType.DT_VARIANT in graph.in_types[graph.edge_dst[edge]]:
                yield graph.edge_dst[edge]

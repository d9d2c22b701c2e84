"""Regroup the nodes of a directed graph so that no edges between groups make a cycle where the nodes make none."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import networkx as nx

Ends = tuple[int, int]


def split_cycles(groups: Sequence[Sequence[int]], edges: Iterable[Ends], more: int) -> list[list[int]]:
    """Return the groups such that the edges between them make no cycle, if those between the nodes make none.

    Groups in a cycle are split into parts that run one after the other, as long as that makes at most `more` groups
    more than there were, and joined otherwise. Groups outside of cycles stay as they are. The order is that of the
    first nodes as given.

    >>> split_cycles([[0, 2], [1]], [(0, 1), (1, 2)], more=1), split_cycles([[0, 2], [1]], [(0, 1), (1, 2)], more=0)
    ([[0], [2], [1]], [[0, 2, 1]])
    """
    listed = list(edges)
    number = {node: i for i, group in enumerate(groups) for node in group}
    made: list[list[int]] = []
    for tangled in _find_cycles(len(groups), _between_groups(listed, number)):
        if len(tangled) == 1:
            made.append(list(groups[tangled[0]]))
            continue
        nodes = {node: i for i in tangled for node in groups[i]}
        parts = cut_into_runs(nodes, [ends for ends in listed if ends[0] in nodes and ends[1] in nodes])
        if len(parts) - len(tangled) > more:
            parts = [list(nodes)]
        more -= max(len(parts) - len(tangled), 0)
        made += parts
    place = {node: i for i, node in enumerate(number)}
    return sorted(made, key=lambda group: place[group[0]])


def cut_into_runs(group_of: Mapping[int, int], edges: Iterable[Ends]) -> list[list[int]]:
    """Return the nodes in an order that respects the edges, cut where the group changes, with few cuts.

    A group goes on as long as one of its nodes has all its inputs. Nodes of a cycle come last, in one part a group.

    >>> cut_into_runs({0: 0, 1: 1, 2: 0, 3: 0}, [(0, 1), (1, 2)])
    [[0, 3], [1], [2]]
    """
    after: dict[int, list[int]] = {node: [] for node in group_of}
    pending = dict.fromkeys(group_of, 0)
    for source, target in edges:
        after[source].append(target)
        pending[target] += 1
    ready: dict[int, list[int]] = {}
    for node, count in pending.items():
        if not count:
            ready.setdefault(group_of[node], []).append(node)
    runs = []
    while ready:
        group = next(iter(ready))
        run = ready[group]
        for node in run:  # grows while it is walked
            for target in after[node]:
                pending[target] -= 1
                if not pending[target]:
                    ready.setdefault(group_of[target], []).append(target)
        runs.append(run)
        del ready[group]
    done = {node for run in runs for node in run}
    rest: dict[int, list[int]] = {}
    for node, group in group_of.items():
        if node not in done:
            rest.setdefault(group, []).append(node)
    return [*runs, *rest.values()]


def sort_groups(groups: Sequence[Sequence[int]], edges: Iterable[Ends]) -> list[list[int]]:
    """Return the groups in an order that respects the edges between them, which make no cycle; ties by the order given.

    >>> sort_groups([[1], [0]], [(0, 1)])
    [[0], [1]]
    """
    graph = _make_quotient(len(groups), link_groups(groups, edges))
    return [list(groups[i]) for i in nx.lexicographical_topological_sort(graph)]


def has_cycle(edges: Iterable[tuple[Hashable, Hashable]]) -> bool:
    """Return whether edges make a cycle.

    >>> has_cycle([(0, 1), (1, 2)]), has_cycle([(0, 1), (1, 0)])
    (False, True)
    """
    return not nx.is_directed_acyclic_graph(nx.DiGraph(list(edges)))


def link_groups(groups: Sequence[Sequence[int]], edges: Iterable[Ends]) -> set[Ends]:
    """Return the edges between groups, by number.

    >>> link_groups([[7, 8], [9]], [(7, 8), (8, 9)])
    {(0, 1)}
    """
    return _between_groups(edges, {node: i for i, group in enumerate(groups) for node in group})


def _between_groups(edges: Iterable[Ends], number: Mapping[int, int]) -> set[Ends]:
    found = {(number[one], number[other]) for one, other in edges if one in number and other in number}
    return {(one, other) for one, other in found if one != other}


def _find_cycles(count: int, edges: Iterable[Ends]) -> list[list[int]]:
    """Return the strongly connected components, each in order."""
    return [sorted(component) for component in nx.strongly_connected_components(_make_quotient(count, edges))]


def _make_quotient(count: int, edges: Iterable[Ends]) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(sorted(edges))
    return graph

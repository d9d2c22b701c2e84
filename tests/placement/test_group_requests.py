"""What the members of a colocation group requested, and reasons whose work grows with the nodes alone."""

from __future__ import annotations

from collections import Counter

import pytest

from simplace.explain import reasons as why
from simplace.placement.group_requests import GroupRequests, collect_requests
from simplace.placement.placement import Placement
from tests.worlds import constant, node, place


def star(count: int) -> Placement:
    """Place nodes that are colocated with a constant, the third of which requests a device."""
    with_it = 'attr { key: "_class" value { list { s: "loc:@c" } } }'
    devices = ["/gpu:0" if i == 2 else "" for i in range(count)]
    lines = [node(f"x{i}", "Relu", "c", device=device, extra=with_it) for i, device in enumerate(devices)]
    return place(constant("c", (4,)), *lines)


def test_members_are_told_apart_by_how_and_what_they_asked_for() -> None:
    placement = star(4)
    ids = placement.graph.ids
    (group,) = placement.requests.values()
    assert group == GroupRequests(
        ids["x0"],  # a constant is placed after what reads it
        {("resource", ""): ids["c"], ("request", ""): ids["x0"], ("request", "/gpu:0"): ids["x2"]},
        {
            ("resource", ""): [ids["c"]],
            ("request", ""): [ids["x0"], ids["x1"]],
            ("request", "/gpu:0"): [ids["x2"]],
        },
    )


def test_the_earliest_by_rank_come_first_and_one_that_is_not_placed_is_last() -> None:
    graph = star(4).graph
    x = [graph.ids[f"x{i}"] for i in range(4)]
    group = collect_requests(graph, x, {x[3]: 0, x[1]: 1})
    assert (group.first, group.earliest["request", ""]) == (x[3], [x[3], x[1]])
    assert collect_requests(graph, x, {}).first == -1


def test_each_member_is_looked_at_once_for_all_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    asks_for = why._asks_for

    def count(name: str, got: object) -> bool:
        calls["asks_for"] += 1
        return asks_for(name, got)  # type: ignore[arg-type]

    monkeypatch.setattr(why, "_asks_for", count)
    placement = star(100)
    leaders = {why.find_reason(placement, placement.graph.ids[f"x{i}"]).follows for i in range(100) if i != 2}
    assert leaders == {placement.graph.ids["x2"]}
    assert calls["asks_for"] == 3 * 99  # for each node, what is asked for in its group: three things

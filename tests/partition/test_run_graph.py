"""The graph of one run of a session: what it needs, with the copies that `show` counts for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simplace.analysis.schedule import schedule_placement
from simplace.errors import NodeNotFoundError
from simplace.partition.run_graph import choose_run, find_run, partition_run
from simplace.placement.placement import Placement
from simplace.program.program import ObservedRun, SessionRun
from simplace.result import Placed
from tests.executor.worlds import placed

GRAPH = """
    x = Placeholder() @c {dtype=float}
    a = Neg(x) @g0
    b = Neg(a) @g1
    c = Neg(b) @g1
    other = Neg(x) @g1
"""
ALL = ObservedRun(SessionRun(("x:0",), ("c:0",)), "model.py:7")
FED = ObservedRun(SessionRun(("a:0",), ("c:0",)), "model.py:8")
OTHER = ObservedRun(SessionRun(("x:0",), (), ("other",)), "model.py:9")
UNKNOWN = ObservedRun(SessionRun((), ("nowhere:0",)), "model.py:10")


def session(*runs: ObservedRun) -> Placement:
    placement = placed(GRAPH)
    return replace(placement, program=replace(placement.program, runs=runs))


def test_the_run_that_needs_the_most_nodes_is_the_step() -> None:
    assert choose_run(session(OTHER, FED, ALL, UNKNOWN).placed) == ALL
    assert choose_run(session(OTHER, FED).placed) == FED
    assert choose_run(session(UNKNOWN).placed) is None
    assert choose_run(session().placed) is None


def test_a_run_is_found_by_its_line_and_by_what_it_fetches_or_runs() -> None:
    whole = session(ALL, FED, OTHER).placed
    assert [find_run(whole, name) for name in ("model.py:8", "c:0", "c", "other")] == [FED, ALL, ALL, OTHER]
    with pytest.raises(NodeNotFoundError, match=r"no run of .* fetches 'b'; its runs fetch c:0, other"):
        find_run(whole, "b")
    with pytest.raises(NodeNotFoundError, match="is not a session with runs"):
        find_run(session().placed, "c")


def test_only_what_a_run_needs_is_partitioned_and_leads_back_to_the_whole_graph() -> None:
    whole = session(FED)
    graph = partition_run(whole.placed, FED.run)
    back = {node.name: graph.node_of_program(i) for i, node in enumerate(graph.nodes) if node.role == "op" and i >= 0}
    assert {name: whole.graph.names[node] for name, node in back.items() if node >= 0} == {"b": "b", "c": "c"}
    assert set(back) - {"b", "c"} >= {"_arg_a_0_0", "_retval_c_0_0"}


@pytest.mark.parametrize("run", [ALL, FED, OTHER], ids=["all", "fed", "other"])
def test_a_schedule_sends_what_show_counts(run: ObservedRun) -> None:
    one = Placed(session(run))
    assert one.run is not None
    assert one.run.run == run
    assert schedule_placement(one.placement).estimated.graph.traffic == one.traffic


def test_another_run_can_be_asked_for() -> None:
    whole = session(ALL, OTHER)
    names = [
        {node.name for node in schedule_placement(whole, run=run).estimated.graph.nodes if node.role == "op"}
        for run in (None, OTHER.run)
    ]
    assert [("c" in each, "other" in each) for each in names] == [(True, False), (False, True)]

"""Loops, branches and sizes that the arguments of the first call decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from simplace.analysis.schedule import schedule_placement
from simplace.costs.estimate import Assumption, estimate_costs
from simplace.costs.outcomes import Loop, Outcomes
from simplace.executor.control_flow import Branch, control_flow
from simplace.graph.constant_numbers import Numbers
from simplace.partition.graph_partition import PartitionedGraph, partition_graph
from simplace.views.text.schedule_tables import list_assumptions
from tests.executor.worlds import Costs, placed

LOOP = """
    n = _Arg() @c {T=int32, index=0}
    x = _Arg() @c {index=1}
    zero = Const() @c {dtype=int32, value=number(0)}
    one = Const() @c {dtype=int32, value=number(1)}
    enter = Enter(zero) @c {T=int32, frame_name=b"loop", is_constant=False}
    merge = Merge(enter, next) @c {T=int32, N=2}
    keep = Enter(n) @c {T=int32, frame_name=b"loop", is_constant=True}
    step = Enter(one) @c {T=int32, frame_name=b"loop", is_constant=True}
    data = Enter(x) @c {frame_name=b"loop", is_constant=True}
    less = Less(merge, keep) @c {T=int32}
    positive = Less(data, data) @c
    both = LogicalAnd(less, positive) @c
    cond = LoopCond(less) @c
    switch = Switch(merge, cond) @c {T=int32}
    exit = Exit(switch) @c {T=int32}
    B = AddV2(switch:1, step) @c {T=int32}
    next = NextIteration(B) @c {T=int32}
"""
JOINED = LOOP.replace("LoopCond(less)", "LoopCond(both)")
SECOND = """
    enter2 = Enter(zero) @c {T=int32, frame_name=b"second", is_constant=False}
    merge2 = Merge(enter2, next2) @c {T=int32, N=2}
    keep2 = Enter(exit) @c {T=int32, frame_name=b"second", is_constant=True}
    step2 = Enter(one) @c {T=int32, frame_name=b"second", is_constant=True}
    less2 = Less(merge2, keep2) @c {T=int32}
    cond2 = LoopCond(less2) @c
    switch2 = Switch(merge2, cond2) @c {T=int32}
    exit2 = Exit(switch2) @c {T=int32}
    B2 = AddV2(switch2:1, step2) @c {T=int32}
    next2 = NextIteration(B2) @c {T=int32}
"""
BRANCH = """
    flag = _Arg() @c {T=bool, index=0}
    x = _Arg() @c {index=1}
    p = LogicalNot(flag) @c
    s = Switch(x, p) @c
    N = Neg(s) @c
    A = Abs(s:1) @c
    m = Merge(N, A) @c {N=2}
"""
FILLED = """
    n = _Arg() @c {T=int32, index=0}
    x = _Arg() @c {index=1}
    F = Fill(n, x) @c {index_type=int32}
    E = Exp(F) @c
"""


def called_with(text: str, values: Mapping[int, Numbers]) -> PartitionedGraph:
    """Partition a graph whose arguments were these integers in the first call."""
    graph = placed(text).placed
    return partition_graph(replace(graph, program=replace(graph.program, given_values=values)))


def loops(text: str, values: Mapping[int, Numbers]) -> tuple[Loop, ...]:
    return control_flow(called_with(text, values)).loops


def test_a_loop_runs_as_often_as_an_argument_says() -> None:
    assert loops(LOOP, {0: 50}) == (Loop("loop", 50, "called"),)
    assert loops(LOOP, {0: 0}) == (Loop("loop", 0, "called"),)
    assert loops(LOOP, {1: 50}) == loops(LOOP, {0: (50, 3)}) == loops(LOOP, {}) == (Loop("loop", 10, "assumed"),)


def test_a_condition_that_asks_for_more_allows_at_most_so_many_rounds() -> None:
    assert loops(JOINED, {0: 50}) == (Loop("loop", 50, "bounded as called"),)


@pytest.mark.parametrize(("first", "how"), [(LOOP, "called"), (JOINED, "bounded as called")])
def test_a_loop_over_what_another_one_has_counted_is_as_sure(first: str, how: str) -> None:
    assert [(loop.trips, loop.how) for loop in loops(first + SECOND, {0: 7})] == [(7, how)] * 2


def test_what_the_user_gives_and_what_was_observed_come_first() -> None:
    graph = called_with(LOOP + SECOND, {0: 50})
    assert control_flow(graph, trips={"loop": 3}).loops == (Loop("loop", 3, "given"), Loop("second", 3, "read"))
    seen = control_flow(graph, observed=Outcomes({"loop": (4,)})).loops
    assert seen[0] == Loop("loop", 4, "observed", (4,))
    graph = called_with(BRANCH, {0: 1})
    assert control_flow(graph, branches={"p": 1}).branches == (Branch("p", 1, "given"),)


def test_a_branch_is_taken_as_an_argument_says() -> None:
    taken = [control_flow(called_with(BRANCH, {0: flag})).branches for flag in (0, 1)]
    assert taken == [(Branch("p", 1, "called"),), (Branch("p", 0, "called"),)]
    assert control_flow(called_with(BRANCH, {})).branches == (Branch("p", 1, "assumed"),)


def test_sizes_follow_from_arguments() -> None:
    estimated = estimate_costs(called_with(FILLED, {0: (3, 5)}), Costs())
    names = [node.name for node in estimated.graph.nodes]
    sizes = {name: estimated.outputs[names.index(name)][0].shape for name in ("F", "E")}
    assert sizes == {"F": (3, 5), "E": (3, 5)}
    assert [one for one in estimated.assumptions if one.kind == "argument"] == [Assumption("argument", 1, "F:0", 0)]


@pytest.mark.parametrize(
    ("text", "value", "note"),
    [
        (LOOP, 50, "the loop loop runs 50 times (as in the first call; --trips NAME=N sets it)"),
        (
            JOINED,
            50,
            "the loop loop runs 50 times (the most that its condition allows in the first call; --trips NAME=N sets "
            "it)",
        ),
        (
            BRANCH,
            1,
            "output 0 of the condition p is taken (as in the first call; --branch NAME=N sets it; of an If, 1 is the "
            "then branch)",
        ),
        (FILLED, 50, "the size of F:0 follows from arguments of the first call"),
    ],
)
def test_the_notes_say_that_it_is_so_in_the_first_call(text: str, value: int, note: str) -> None:
    placement = placed(text)
    of_call = replace(placement, program=replace(placement.program, given_values={0: value}))
    assert note in list_assumptions(schedule_placement(of_call, costs=Costs()))

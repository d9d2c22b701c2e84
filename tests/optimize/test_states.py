"""Columns that the search keeps up to date say what the evaluators say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplace.optimize import PlacementProblem
from simplace.optimize.block_latency import compute_latency
from simplace.optimize.grouped import group_problem
from simplace.optimize.latency_state import LatencyState
from simplace.optimize.linear_blocks import split_by_latency, tabulate_cpu_paths
from simplace.optimize.linear_split import split_by_load, tabulate_segments
from simplace.optimize.max_load import compute_loads, compute_max_load
from tests.optimize.problems import chain, fork, problems

finite = problems(most=8).filter(lambda problem: all(map(len, group_problem(problem).allowed)))


@settings(max_examples=100, deadline=None)
@given(problem=finite, data=st.data())
def test_moves_change_loads_and_latency_as_they_should(problem: PlacementProblem, data: st.DataObject):
    grouped = group_problem(problem)
    state = LatencyState(grouped, [allowed[0] for allowed in grouped.allowed])
    for _ in range(6):
        group = data.draw(st.integers(0, len(grouped) - 1))
        to = data.draw(st.sampled_from(grouped.allowed[group]))
        if to == state.device_of[group]:
            continue
        before, device_of = list(state.loads), list(state.device_of)
        taken = state.move_many([(group, to)])
        placed = grouped.spread(state.device_of)
        assert state.loads == pytest.approx(compute_loads(problem, placed))
        assert state.measure() == pytest.approx(compute_latency(problem, placed))
        if data.draw(st.booleans()):
            state.take_back(taken)
            assert (state.loads, state.device_of) == (pytest.approx(before), device_of)


@settings(max_examples=60, deadline=None)
@given(problem=finite)
def test_segments_have_the_load_of_an_accelerator(problem: PlacementProblem):
    grouped = group_problem(problem)
    accelerator, cpu = tabulate_segments(grouped, [(group,) for group in grouped.order])
    for start in range(len(grouped)):
        for end in range(start + 1, len(grouped) + 1):
            inside = set(grouped.order[start:end])
            one = grouped.spread([int(group in inside) for group in range(len(grouped))])
            if accelerator[start, end] < float("inf"):
                assert accelerator[start, end] == pytest.approx(compute_loads(problem, one)[1])
            other = grouped.spread([int(group not in inside) for group in range(len(grouped))])
            if cpu[start, end] < float("inf") and problem.accelerators:
                assert cpu[start, end] == pytest.approx(compute_loads(problem, other)[0])


def test_stretches_on_the_cpu_have_their_critical_path():
    table = tabulate_cpu_paths(group_problem(fork()), [(0,), (1,), (2,), (3,)])
    assert table[0, 1:].tolist() == [2, 22, 22, 24]
    assert table[1, 2:].tolist() == [20, 20, 22]
    assert table[3, 4:].tolist() == [2]


def test_a_chain_is_split_where_it_is_cheapest():
    grouped = group_problem(chain(1, 1, 1, 1, cost=0.125))
    assert split_by_load(grouped, grouped.order) == [1, 1, 2, 2]
    assert split_by_latency(grouped, grouped.order) == [1, 1, 2, 2]
    assert compute_max_load(grouped.problem, (1, 1, 2, 2)) == 2.125

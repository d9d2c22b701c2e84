"""Answers of the search: valid, never below the bound, the best of all placements where these can be counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplace.errors import NoPlacementError
from simplace.optimize import PlacementProblem, Solution, search_placements, solve
from simplace.optimize.grouped import group_problem
from simplace.optimize.objectives import OBJECTIVES, ObjectiveName
from tests.optimize.problems import best_value, chain, fork, problems

EACH_OBJECTIVE = pytest.mark.parametrize("objective", list(OBJECTIVES))


def one_device(problem: PlacementProblem, objective: ObjectiveName) -> float:
    """Return what everything on the CPU, or on one accelerator, is worth."""
    whole = [(device,) * len(problem) for device in problem.devices]
    return min(
        (OBJECTIVES[objective].evaluate(problem, one) for one in whole if problem.keeps_limits(one)), default=inf
    )


@EACH_OBJECTIVE
@settings(max_examples=60, deadline=None)
@given(problem=problems(), seed=st.integers(0, 3))
def test_an_answer_is_valid_and_no_placement_is_below_its_bound(
    problem: PlacementProblem, seed: int, objective: ObjectiveName
):
    best = best_value(problem, objective)
    if best == inf:
        with pytest.raises(NoPlacementError):
            solve(problem, objective, rounds=20, seed=seed, seconds=None)
        return
    placed = solve(problem, objective, rounds=60, seed=seed, seconds=None)
    assert problem.keeps_limits(placed.device_of)
    assert placed.value == pytest.approx(OBJECTIVES[objective].evaluate(problem, placed.device_of))
    assert placed.bound <= best + 1e-9
    assert placed.value >= best - 1e-9
    if objective != "makespan":  # whose annealing may end beside the best
        assert placed.value == pytest.approx(best)


@EACH_OBJECTIVE
@settings(max_examples=15, deadline=None)
@given(problem=problems(most=14))
def test_each_answer_on_the_way_is_valid_and_none_is_worse(problem: PlacementProblem, objective: ObjectiveName):
    try:
        answers = list(islice(search_placements(problem, objective), 30))
    except NoPlacementError:
        return
    assert all(problem.keeps_limits(answer.device_of) for answer in answers)
    assert all(answer.bound <= answer.value for answer in answers)
    assert [answer.value for answer in answers] == sorted((answer.value for answer in answers), reverse=True)
    assert answers[-1].value <= one_device(problem, objective)


@EACH_OBJECTIVE
def test_a_seed_and_rounds_decide_the_answer(objective: ObjectiveName):
    world = replace(chain(*range(1, 25), cost=0.25, accelerators=4), accelerator_bytes=12.0)
    first, second = (solve(world, objective, rounds=25, seed=7, seconds=None) for _ in range(2))
    assert first == second


def test_a_pipeline_is_cut_in_halves():
    placed = solve(replace(chain(1, 1, 1, 1, cost=0.125), accelerator_bytes=4.0), "max_load", rounds=30, seconds=None)
    assert (placed.value, len(set(placed.device_of))) == (2.125, 2)


def test_one_device_may_be_the_best():
    world = replace(chain(1, 1, 1, cost=9), accelerator_bytes=4.0)
    for objective in OBJECTIVES:
        placed = solve(world, objective, rounds=20, seconds=None)
        assert (placed.device_of, placed.value, placed.method) == ((1, 1, 1), 3, "one device")


def test_a_proven_optimum_ends_the_search():
    world = replace(chain(1, 1, 1), accelerator_bytes=4.0)
    assert solve(world, "makespan", seconds=None) == Solution((1, 1, 1), 3, 3, "one device")


def test_branches_run_on_two_devices():
    assert solve(fork(), "makespan", rounds=20, seconds=None).value == 1 + 5 + 1


def test_a_judge_has_the_last_word():
    """It forbids the accelerators, although the objective prefers them."""
    placed = solve(fork(), "makespan", rounds=20, seconds=None, judge=lambda device_of: float(sum(device_of)))
    assert (placed.device_of, placed.value, placed.bound) == ((0, 0, 0, 0), 0, 0)


def test_the_report_receives_each_round():
    seen: list[float] = []
    placed = solve(fork(), "max_load", rounds=5, seconds=None, report=lambda best: seen.append(best.value))
    assert len(seen) == 5
    assert seen[-1] == placed.value


def test_no_device_can_hold_a_group():
    with pytest.raises(NoPlacementError, match="no device can hold the group of node 1"):
        solve(replace(chain(1, 1), node_bytes=(1.0, 3.0), cpu_time=(1.0, inf)), "max_load")


def test_memory_that_no_placement_keeps():
    with pytest.raises(NoPlacementError, match="no placement was found that keeps the memory"):
        solve(replace(chain(1, 1, 1), cpu_time=(inf,) * 3, accelerators=1), "max_load")


def test_outputs_of_a_group_to_the_same_readers_are_one():
    world = replace(fork(), group_of=(0, 1, 1, 3))
    grouped = group_problem(world)
    assert grouped.members == ((0,), (1, 2), (3,))
    assert [(net.producer, net.readers, net.cost) for net in grouped.nets] == [(0, (1,), 0.5), (1, (2,), 0.5)]

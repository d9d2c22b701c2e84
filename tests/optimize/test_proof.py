"""Bounds and placements of CP-SAT, which an extra brings."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings

from simplace.errors import MissingExtraError, NoPlacementError
from simplace.optimize import PlacementProblem, solve
from simplace.optimize.cp_sat import ConstraintProgram
from simplace.optimize.grouped import group_problem
from simplace.optimize.objectives import OBJECTIVES, ObjectiveName
from tests.optimize.problems import best_value, chain, problems


@pytest.mark.parametrize("objective", ["max_load", "latency"])
@settings(max_examples=20, deadline=None)
@given(problem=problems(most=5))
def test_a_constraint_program_ends_at_the_best_placement(problem: PlacementProblem, objective: ObjectiveName):
    pytest.importorskip("ortools", reason="needs OR-Tools: pip install 'simplace[prove]'")
    best = best_value(problem, objective)
    try:
        start = solve(problem, objective, rounds=1, seconds=None)
    except NoPlacementError:
        return
    grouped = group_problem(problem)
    found: list[tuple[int, ...]] = [start.device_of]
    bounds = [0.0]
    program = ConstraintProgram(
        grouped, objective, [start.device_of[nodes[0]] for nodes in grouped.members], start.value
    )
    program.run(20.0, 1, lambda placed: found.append(grouped.spread(placed)), bounds.append)
    assert all(problem.keeps_limits(device_of) for device_of in found)
    assert min(OBJECTIVES[objective].evaluate(problem, one) for one in found) == pytest.approx(best, abs=1e-4)
    assert max(bounds) == pytest.approx(best, abs=1e-4)
    assert max(bounds) <= best + 1e-9


def test_a_proof_ends_the_search():
    """The bound by counting is below: three nodes of 2 cannot be shared equally by two accelerators."""
    pytest.importorskip("ortools", reason="needs OR-Tools: pip install 'simplace[prove]'")
    world = replace(chain(2, 2, 2, cost=0.125, slow=100.0), accelerator_bytes=8.0)
    placed = solve(world, "max_load", seconds=20, prove=True)
    assert (placed.value, placed.bound) == (4.125, pytest.approx(4.125, rel=1e-4))


def test_without_it_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(MissingExtraError, match="pip install 'simplace\\[prove\\]'"):
        solve(replace(chain(2, 2, 2), accelerator_bytes=8.0), "max_load", seconds=1, prove=True)


def test_a_list_schedule_is_not_proven():
    """A makespan has its bound by counting alone."""
    world = replace(chain(2, 2, 2), accelerator_bytes=1.0)
    assert solve(world, "makespan", seconds=0.2, prove=True).bound == 6

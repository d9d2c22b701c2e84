"""The verdict on a step that `show` prints: of small programs and short loops, and who has it for the others."""

from __future__ import annotations

import pytest

from simplace.api import simulated_step
from simplace.api.judged_step import judge_step
from simplace.result import Placed, Result
from tests.executor.test_step_findings import LOOP
from tests.executor.worlds import placed


def result(text: str) -> Result:
    placement = placed(text)
    return Result("model.py", "2.21.0", "shipped", placement.devices, (Placed(placement),))


def test_a_step_with_a_short_loop_has_a_verdict() -> None:
    assert judge_step(result(LOOP), only_cheap=True).startswith("a simulated step of ")


def test_a_step_is_simulated_once() -> None:
    loop = result(LOOP)
    judge_step(loop, only_cheap=True, lists_findings=True)
    assert simulated_step.simulate_largest(loop) is simulated_step.simulate_largest(loop, only_cheap=True)
    assert simulated_step.find_simulated(loop) is simulated_step.find_simulated(loop)
    assert simulated_step.simulate_largest(result(LOOP)) is not simulated_step.simulate_largest(loop)


def test_a_step_with_a_long_loop_has_it_from_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = result(LOOP)
    name, nodes = loop.largest().placement.program.title, len(loop.largest().placement.graph)
    monkeypatch.setattr(
        simulated_step, "_CHEAP_RUNS", 10 * nodes
    )  # of a loop whose trips nothing tells, 10 are assumed
    assert judge_step(loop, only_cheap=True).startswith("a simulated step of ")
    monkeypatch.setattr(simulated_step, "_CHEAP_RUNS", 10 * nodes - 1)
    assert judge_step(loop, only_cheap=True) == (
        f"no step of {name} is simulated here, since it is large or has long loops: simplace schedule does, and says "
        "what its devices wait for"
    )
    assert judge_step(loop).startswith("a simulated step of ")


def test_a_large_step_has_it_from_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_step, "_CHEAP", 3)
    chain = "x = Placeholder() @g0 {dtype=float}\n A = Neg(x) @g0\n B = Neg(A) @g0"
    assert judge_step(result(chain), only_cheap=True).startswith("no step of ")

"""Whether one GPU would be quicker than several with the same ops, by simulation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simplace.analysis.one_gpu import try_one_gpu
from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.pipeline import place_program
from tests.executor.test_collective_runs import REDUCE, SLOW_B
from tests.executor.worlds import Costs, run
from tests.lowering.worlds import DEVICES, TABLE, call_program, function
from tests.worlds import GPU0, GPU1

SPLIT = """
    x = Placeholder() @g0 {dtype=float}
    A = Neg(x) @g0
    B = Neg(A) @g1
"""


def test_a_split_whose_copies_take_longer_than_its_ops() -> None:
    found = try_one_gpu(run(SPLIT, Costs(copies=5.0)))
    assert found is not None
    assert (found.device, found.saves) == ("GPU:0", pytest.approx(5 / 7))
    assert 0 < found.error < found.saves


def test_two_gpus_that_work_at_once_are_quicker() -> None:
    apart = "x = Placeholder() @c {dtype=float}\n A = Neg(x) @g0\n B = Neg(x) @g1"
    assert try_one_gpu(run(apart, Costs(default=5.0))) is None


def test_a_gain_that_is_too_small_is_none() -> None:
    assert try_one_gpu(run(SPLIT, Costs(copies=0.05))) is None


def test_a_variable_on_another_gpu_goes_along() -> None:
    body = """
        A = Neg(x)
        read = ReadVariableOp(w) {dtype=float}
        B = AddV2(A:y:0, read:value:0) @/device:GPU:1
        C = Neg(B:z:0)
    """
    step = function("step(x: float, w: resource) -> y: float", body, {"y": "C:y:0"})
    placement = place_program(call_program(step, devices=(GPU0, GPU1)), DEVICES, TABLE)
    assert placement.device(placement.graph.ids["read"]) == GPU1
    found = try_one_gpu(schedule_placement(placement, costs=Costs({"read": 0.0, "w": 0.0}, copies=5.0)))
    assert found is not None
    assert found.saves == pytest.approx(10 / 15)  # two copies of 5 ms, five nodes of 1 ms


def test_one_gpu_alone_is_what_there_is() -> None:
    assert try_one_gpu(run(SPLIT.replace("@g1", "@g0"), Costs())) is None
    assert try_one_gpu(run(SPLIT.replace("@g1", "@c"), Costs(copies=5.0))) is None


def test_what_does_not_fit_on_one_gpu_is_not_told() -> None:
    done = run(SPLIT, Costs(copies=5.0))
    options = replace(done.execution.options, limits={GPU0: 1, GPU1: 1})
    assert try_one_gpu(Schedule.of(done.placement, options)) is None


def test_replicas_that_reduce_are_of_a_strategy() -> None:
    assert try_one_gpu(run(REDUCE, replace(SLOW_B, copies=50.0))) is None

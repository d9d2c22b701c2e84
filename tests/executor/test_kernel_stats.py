"""Which runs of an op are expensive, by its moving average."""

from __future__ import annotations

from simplace.executor.kernel_stats import EXPENSIVE_CYCLES, CostAverages


def test_where_the_average_of_each_run_was_observed_each_is_decided_by_its_own() -> None:
    averages = CostAverages(["MatMul"], [(0.0, 2 * EXPENSIVE_CYCLES, 0.0)], [True], is_warm=True)
    assert [averages.decide(0) for _ in range(4)] == [False, True, False, False]
    averages.start_step()
    assert [averages.decide(0) for _ in range(2)] == [False, True]


def test_an_op_that_was_expensive_becomes_cheap_by_its_runs() -> None:
    averages = CostAverages(["MatMul", "Identity"], [(4000.0,), (1e6,)], [True, False], is_warm=False)
    seen = []
    for _ in range(200):
        seen.append(averages.decide(0))
        averages.ran(0)
    assert (seen[0], seen[-1], seen == sorted(seen, reverse=True)) == (True, False, True)
    assert not averages.decide(1)

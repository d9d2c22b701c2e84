"""A measured step simulated with its own times, on made-up traces."""

from __future__ import annotations

import pytest

from simplace.costs.cost_model import Overheads
from simplace.measure.measurement import MeasuredStep, Measurement, NodeRun
from simplace.measure.observed_order import list_traced_nodes, simulate_measured_step
from tests.executor.worlds import parts

GRAPH = """
    x = Placeholder() @c {dtype=float, shape=shape}
    a = Neg(x) @c {T=float}
    b = Neg(a) @c {T=float}
"""


def node(name: str, start: int, end: int, label: int, names: int) -> NodeRun:
    return NodeRun(name, start, end, start, end, label=label, names=names)


def test_a_label_takes_its_time_before_the_next_node_starts() -> None:
    step = MeasuredStep((node("x", 0, 100, 20, 0), node("a", 200, 900, 40, 1), node("b", 1000, 1500, 80, 2)))
    measured = Measurement("2.21.0", 1, 1, (step,), ())
    plain, labelled = (
        simulate_measured_step(parts(GRAPH), measured, step, Overheads(label_s=byte, name_s=name))
        for byte, name in ((0.0, 0.0), (1e-9, 50e-9))
    )
    assert [(s.start, s.end) for s in plain.trace.spans][-3:] == [(0, 100), (100, 800), (800, 1300)]
    assert [(s.start, s.end) for s in labelled.trace.spans][-3:] == [(0, 120), (120, 910), (910, 1590)]


def step(pace: float, *, delay: int = 0) -> MeasuredStep:
    return MeasuredStep((node("a", 0, 1000, 0, 0),), delay=delay, pace=pace)


def test_a_step_tells_by_how_much_the_machine_was_slower_than_undisturbed() -> None:
    assert step(450.0).measure_slowness(300.0) == pytest.approx(0.5)
    assert step(250.0).measure_slowness(300.0) == 0
    assert step(450.0).measure_slowness(0.0) == step(0.0).measure_slowness(300.0) == 0


def test_quiet_steps_are_those_of_an_undisturbed_machine_in_their_order() -> None:
    slow, waiting, quiet = step(540.0), step(300.0, delay=60), [step(300.0 + i) for i in range(6)]
    steps = (quiet[5], slow, *quiet[:3], waiting, *quiet[3:5])
    assert Measurement("2.21.0", 1, 1, steps, (), (), 300.0).quiet_steps == (quiet[5], *quiet[:5])


def test_where_few_steps_are_quiet_slow_ones_count_before_delayed_ones() -> None:
    steps = tuple(step(pace) for pace in (600.0, 300.0, 540.0, 450.0, 380.0))
    delayed = step(300.0, delay=60), step(300.0, delay=400)
    found = Measurement("2.21.0", 1, 1, (*delayed, *steps), (), (), 300.0).quiet_steps
    assert found == steps
    assert Measurement("2.21.0", 1, 1, (*delayed, *steps[:4]), (), (), 300.0).quiet_steps == (delayed[0], *steps[:4])


def test_a_quarter_of_many_disturbed_steps_counts() -> None:
    steps = tuple(step(400.0 + i) for i in range(40))
    assert Measurement("2.21.0", 1, 1, steps, (), (), 300.0).quiet_steps == steps[:10]


def test_times_of_nodes_are_those_of_quiet_steps() -> None:
    fast = MeasuredStep((node("a", 0, 1000, 0, 0),), pace=300.0)
    slow = MeasuredStep((node("a", 0, 1800, 0, 0),), pace=540.0)
    measured = Measurement("2.21.0", 1, 1, (*[fast] * 5, *[slow] * 9), (), (), 300.0)
    assert (measured.seconds, measured.kernels) == ({"a": 1e-6}, {"a": 1e-6})


def waiting(name: str, scheduled: int, start: int, end: int) -> NodeRun:
    return NodeRun(name, start, end, start, end, scheduled)


def measured_on(inter_op: int, *steps: MeasuredStep) -> Measurement:
    return Measurement("2.21.0", inter_op, 1, steps, (), (), 300.0)


def test_a_pause_in_which_no_thread_ran_delays_a_step_where_waking_a_thread_takes_less() -> None:
    runs = (node("a", 0, 1_000, 0, 0), node("b", 90_000, 500_000, 0, 0), node("c", 100_000, 110_000, 0, 0),
            node("d", 700_000, 1_000_000, 0, 0))  # fmt: skip
    paused = MeasuredStep(runs, delay=100_000)
    assert paused.stall == 200_000
    assert measured_on(1, paused).measure_delay(paused) == pytest.approx(0.3)


def test_a_node_that_waits_for_longer_than_waking_takes_while_one_thread_runs_delays_a_step_on_two() -> None:
    late = MeasuredStep((
        waiting("a", 0, 10_000, 400_000), waiting("b", 10_000, 410_000, 800_000),
        waiting("c", 10_000, 450_000, 460_000), waiting("d", 700_000, 800_000, 1_010_000),
    ))  # fmt: skip
    assert late.absence == 440_000  # d starts in time
    assert [measured_on(inter_op, late).measure_delay(late) for inter_op in (1, -1, 2)] == [0.0, 0.0, 0.44]


def test_a_node_that_waits_while_both_threads_run_delays_nothing() -> None:
    full = MeasuredStep((
        waiting("a", 1, 10_000, 400_000), waiting("b", 1, 10_000, 420_000), waiting("c", 5_000, 420_000, 800_000),
        waiting("d", 5_000, 430_000, 500_000),
    ))  # fmt: skip
    assert full.absence == 0


def test_steps_that_nothing_delayed_count_however_slow_the_machine_was() -> None:
    steps = tuple(step(pace) for pace in (600.0, 300.0, 540.0, 450.0, 380.0, 310.0, 500.0))
    found = measured_on(1, step(300.0, delay=60), *steps)
    assert found.undelayed_steps == steps
    assert found.quiet_steps == tuple(step(pace) for pace in (300.0, 450.0, 380.0, 310.0, 500.0))


@pytest.mark.parametrize(("expensive", "order"), [((), ["h", "x", "a"]), (("h",), ["x", "a", "h"])])
def test_a_handle_is_as_expensive_as_tensorflow_says_before_the_step(
    expensive: tuple[str, ...], order: list[str]
) -> None:
    graph = parts("""
        h = VarHandleOp() @c {dtype=float, shape=shape}
        x = Placeholder() @c {dtype=float, shape=shape}
        a = Neg(x) @c {T=float}
    """)
    runs = tuple(node(name, 100 * i, 100 * i + 50, 0, 0) for i, name in enumerate(order))
    step = MeasuredStep(runs, expensive=frozenset(expensive))
    run = simulate_measured_step(graph, Measurement("2.21.0", 1, 1, (step,), ()), step, Overheads())
    assert list_traced_nodes(run, step) == order

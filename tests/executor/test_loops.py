"""Loops of a step, and of its gradient: which they are, how often they run, and what they cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.analysis.step_findings import find_in_step
from simplace.costs.outcomes import How, Loop
from simplace.explain.waiting_findings import LaunchBoundLoop
from tests.executor.worlds import simulate_step

STEP = """
import tensorflow as tf

w = tf.Variable(tf.ones([8, 8]))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        for _ in tf.range(7):
            x = tf.tanh(x @ w)
        loss = tf.reduce_sum(x)
    return tape.gradient(loss, w)

step(tf.ones([4, 8]))
"""
LEFT_EARLY = """
import tensorflow as tf

@tf.function
def step(x, n):
    for _ in tf.range(n):
        x = tf.tanh(tf.tanh(tf.tanh(x * 0.5) * 0.5) * 0.5)
        if x[0, 0] < 0.0:
            break
    return x

step(tf.ones([4, 8]), tf.constant(7))
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_it_runs_as_often_as_its_loop_has_counted(tmp_path: Path) -> None:
    schedule = simulate_step(tmp_path, STEP)
    assert set(schedule.flow.loops) == {Loop("while", 7, "read"), Loop("gradient_tape/while/while_grad", 7, "read")}
    loops = [one for one in find_in_step(schedule) if isinstance(one, LaunchBoundLoop)]
    assert len(loops) == 2
    assert sum(one.cost.seconds for one in loops) < schedule.trace.makespan / 1e9  # one runs after the other


CALLED = """
import tensorflow as tf

@tf.function
def inner(x, n):
    return tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, tf.sin(x)), [0, x])

@tf.function
def step(x):
    return inner(x, tf.constant(3))

step(tf.ones([64]))
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_a_limit_is_read_through_a_call(tmp_path: Path) -> None:
    assert simulate_step(tmp_path, CALLED).flow.loops == (Loop("PartitionedCall/while", 3, "read"),)


NESTED = """
import tensorflow as tf

w = tf.Variable(tf.ones([8, 8]))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        for _ in tf.range(3):
            for _ in tf.range({count}):
                x = tf.sin(x)
            x = x @ w
        loss = tf.reduce_sum(x)
    return tape.gradient(loss, w)

step(tf.ones([8, 8]))
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    ("count", "trips", "how"), [("2", 2, "read"), ("tf.cast(x[0, 0] * 2, tf.int32)", 10, "assumed")]
)
def test_a_loop_in_a_gradients_loop_runs_as_often_as_its_loop(tmp_path: Path, count: str, trips: int, how: How) -> None:
    """Its count was put into a list by the loop around it."""
    loops = simulate_step(tmp_path, NESTED.format(count=count)).flow.loops
    assert sorted((loop.trips, loop.how) for loop in loops) == sorted([(3, "read")] * 2 + [(trips, how)] * 2)


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_a_loop_whose_condition_branches_has_the_name_of_its_frame(tmp_path: Path) -> None:
    schedule = simulate_step(tmp_path, LEFT_EARLY)
    assert schedule.flow.loops == (Loop("while", 7, "bounded as called"),)
    assert [one.trips for one in find_in_step(schedule) if isinstance(one, LaunchBoundLoop)] == [7]

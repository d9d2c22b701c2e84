"""Small graphs, each run to measure one of the executor's fixed times.

They are run in the same process and under the same tracing as what is measured, beside it, and gauged as that is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from simplace.measure.child import steps
from simplace.measure.child.runnable import Runnable

_TINY, _SMALL = 4, 64  # sides of square matrices: a product takes below a microsecond, and some
_SIDES_AFTER = (64, 128, 256, 512)
_SIDES_BESIDE = (48, 96, 112, 128, 144, 160, 192, 256, 384)
_ROUNDS = 12
_TRIPS, _TRIPS_OF_GAUGE = 24, 8


def run_probes(warm_up: int, count: int) -> dict[str, Any]:
    """Run every probe `count` times after `warm_up` others.

    Return by name the less disturbed half of its steps, in the layout of `steps.run_steps`.
    """
    one: dict[str, Callable[[], None]] = {
        "small": _build_small_ops, "alive": partial(_build_switches, 0), "dead": partial(_build_switches, 50),
        "wide": _build_fan_out,
    }  # fmt: skip
    one |= {f"after {side}": partial(_build_chain, side) for side in _SIDES_AFTER}
    two: dict[str, Callable[[], None]] = {f"beside {side}": partial(_build_pairs, side) for side in _SIDES_BESIDE}
    two["shared"] = _build_two_loops
    kinds = ((one, 1), (two, 2))
    return {
        name: _trace_steps(build, inter_op, warm_up, count) for kind, inter_op in kinds for name, build in kind.items()
    }


def build_gauge() -> Runnable:
    """Return the graph that shows how fast the machine is just now."""
    return _build_runnable(partial(_build_loop, _TRIPS_OF_GAUGE))


def _trace_steps(build: Callable[[], None], inter_op: int, warm_up: int, count: int) -> list[Any]:
    found, _ = steps.run_steps(_build_runnable(build), [(inter_op, 1)], 1, warm_up, count, build_gauge())
    return sorted(found[0]["steps"], key=_measure_disturbance)[: (count + 1) // 2]


def _measure_disturbance(step: dict[str, Any]) -> float:
    """Return the sum, as shares of a step, of the waits for a core and of the machine's change in speed."""
    before, after = step["paces"]
    span = max(event[4] for event in step["events"]) - min(event[3] for event in step["events"])
    return float(step["delay"] / span + max(before, after) / min(before, after) - 1)


def _build_runnable(build: Callable[[], None]) -> Runnable:
    with tf.Graph().as_default() as graph:
        build()
    return Runnable(graph.as_graph_def(), {}, [])


def _make_matrix(side: int) -> Any:
    return tf.constant(np.full((side, side), 1 / side, np.float32))


def _build_loop(trips: int) -> None:
    """Build an empty loop with six variables."""
    first = [tf.constant(0), *(tf.constant(float(i)) for i in range(6))]
    tf.while_loop(lambda i, *_: i < trips, lambda i, *values: (i + 1, *(tf.identity(v) for v in values)), first)


def _build_small_ops() -> None:
    """Build a loop of small ops of many kinds, as cells of networks are."""
    weights, rows, bias = _make_matrix(_SMALL), tf.constant(np.ones((_TRIPS, _SMALL), np.float32)), tf.zeros([_SMALL])

    def body(i: Any, x: Any, mean: Any) -> Any:
        left, right = tf.split(tf.nn.relu(tf.matmul(x, weights) + bias), 2, 1)
        both = tf.concat([tf.exp(-tf.square(left)), tf.sqrt(tf.maximum(left, right))], 1)
        centred = both - tf.reduce_mean(both, 1, keepdims=True)
        scaled = tf.reshape(centred, [-1]) * tf.math.rsqrt(1.0 + tf.reduce_sum(tf.square(centred)))
        return i + 1, tf.minimum(tf.reshape(scaled, [-1, _SMALL]), rows[i]), 0.5 * (mean + tf.reduce_mean(right))

    first = (tf.constant(0), _make_matrix(_SMALL)[:16], tf.constant(0.0))
    tf.while_loop(lambda i, *_: i < _TRIPS, body, first)


def _build_two_loops() -> None:
    """Build two loops for two threads, one longer than the other."""
    value = _make_matrix(_SMALL)
    before = tf.matmul(value, value)
    for name, trips in (("long", _TRIPS), ("short", _TRIPS // 2)):
        with tf.control_dependencies([before]):
            own = tf.matmul(value, value)
        with tf.name_scope(name), tf.control_dependencies([own]):
            _build_loop(trips)


def _build_switches(dead: int) -> None:
    """Build conditionals with a chain of dead nodes on the branches that are not taken."""
    taken, value = tf.constant(True), tf.constant(1.0)
    for round_ in range(_ROUNDS):
        no, yes = tf.raw_ops.Switch(data=value, pred=taken, name=f"switch{round_}")
        for _ in range(dead):
            no = tf.identity(no, name="dead")
        value = tf.raw_ops.Merge(inputs=[yes, no], name=f"merge{round_}")[0]


def _build_fan_out() -> None:
    """Build rounds in which one op makes four expensive ones ready."""
    value, side = _make_matrix(_SMALL), _make_matrix(_SMALL)
    for round_ in range(_ROUNDS):
        now = [tf.matmul(value, side, name=f"wide{round_}_{i}") for i in range(4)]
        with tf.control_dependencies(now):
            value = tf.matmul(now[0], side, name=f"join{round_}")


def _build_chain(side: int) -> None:
    """Build a chain of matrix products of one size."""
    value, other = _make_matrix(side), _make_matrix(side)
    for i in range(2 * _ROUNDS):
        value = tf.matmul(value, other, name=f"product{i}")


def _build_pairs(side: int) -> None:
    """Build rounds in which an idle second thread takes a small product while the first one runs a larger one."""
    small, large = _make_matrix(_SMALL), _make_matrix(side)
    before = tf.matmul(small, small, name="join_1")
    for round_ in range(_ROUNDS):
        with tf.control_dependencies([before]):
            one = tf.matmul(small, small, name=f"small{round_}")
            other = tf.matmul(large, large, name=f"large{round_}")
        with tf.control_dependencies([one, other]):
            before = tf.matmul(small, small, name=f"join{round_}")

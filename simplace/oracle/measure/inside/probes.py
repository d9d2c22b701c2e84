"""Small graphs that do nothing but what the executor charges for: each is run to read one of its fixed times off.

They are run in the same process and under the same tracing as what is measured, beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from simplace.oracle.measure.inside import steps
from simplace.oracle.measure.inside.runnable import Runnable

_TINY, _SMALL = 4, 64  # sides of square matrices: a product takes below a microsecond, and some
_SIDES_AFTER = (64, 128, 256, 512)
_SIDES_BESIDE = (48, 96, 112, 128, 144, 160, 192, 256)
_ROUNDS = 12
_WARM_UP, _STEPS = 100, 24


def run() -> dict[str, Any]:
    """Run every probe; return by name the steps' events, in the layout of `steps.run`."""
    one: dict[str, Callable[[], None]] = {
        "loop": _loop, "alive": partial(_switches, 0), "dead": partial(_switches, 50), "wide": _wide,
    }  # fmt: skip
    one |= {f"after {side}": partial(_chain, side) for side in _SIDES_AFTER}
    two = {f"beside {side}": partial(_pairs, side) for side in _SIDES_BESIDE}
    found = {name: _events(build, 1) for name, build in one.items()}
    return found | {name: _events(build, 2) for name, build in two.items()}


def _events(build: Callable[[], None], inter_op: int) -> list[Any]:
    with tf.Graph().as_default() as graph:
        build()
    runnable = Runnable(graph.as_graph_def(), {}, [])
    found, _ = steps.run(runnable, [(inter_op, 1)], 1, _WARM_UP, _STEPS)
    least_disturbed = sorted(found[0], key=lambda step: step["delay"])[: _STEPS // 2]
    return [step["events"] for step in least_disturbed]


def _matrix(side: int) -> Any:
    return tf.constant(np.full((side, side), 1 / side, np.float32))


def _loop() -> None:
    """Run an empty loop with six variables thirty times."""
    first = [tf.constant(0), *(tf.constant(float(i)) for i in range(6))]
    tf.while_loop(lambda i, *_: i < 30, lambda i, *values: (i + 1, *(tf.identity(v) for v in values)), first)


def _switches(dead: int) -> None:
    """Put a chain of dead nodes on the branches that are not taken."""
    taken, value = tf.constant(True), tf.constant(1.0)
    for round_ in range(_ROUNDS):
        no, yes = tf.raw_ops.Switch(data=value, pred=taken, name=f"switch{round_}")
        for _ in range(dead):
            no = tf.identity(no, name="dead")
        value = tf.raw_ops.Merge(inputs=[yes, no], name=f"merge{round_}")[0]


def _wide() -> None:
    """Let one op make four expensive ones ready, again and again."""
    value, side = _matrix(_SMALL), _matrix(_SMALL)
    for round_ in range(_ROUNDS):
        now = [tf.matmul(value, side, name=f"wide{round_}_{i}") for i in range(4)]
        with tf.control_dependencies(now):
            value = tf.matmul(now[0], side, name=f"join{round_}")


def _chain(side: int) -> None:
    """Let products of one size follow each other."""
    value, other = _matrix(side), _matrix(side)
    for i in range(2 * _ROUNDS):
        value = tf.matmul(value, other, name=f"product{i}")


def _pairs(side: int) -> None:
    """Let a small product be handed to a second thread that was idle while the first one ran a larger one."""
    small, large = _matrix(_SMALL), _matrix(side)
    before = tf.matmul(small, small, name="join_1")
    for round_ in range(_ROUNDS):
        with tf.control_dependencies([before]):
            one = tf.matmul(small, small, name=f"small{round_}")
            other = tf.matmul(large, large, name=f"large{round_}")
        with tf.control_dependencies([one, other]):
            before = tf.matmul(small, small, name=f"join{round_}")

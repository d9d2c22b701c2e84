"""Small graphs, each run to measure one of the executor's fixed times.

They are run in the same process and under the same tracing as what is measured, beside it, and gauged as that is.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from simplace.costs.calibration import BRANCHES, DEAD, FEW_DEAD, LONG_NAMES, NEW_ON_ONE, NEW_ON_TWO, PAIR
from simplace.measure.child import steps
from simplace.measure.child.runnable import Runnable

_TINY, _SMALL = 4, 64  # sides of square matrices: a product takes below a microsecond, and some
_SIDES_AFTER = (64, 128, 256, 512)
_LINKS = 80  # small nodes in a row, which take longer than waking a thread
_BESIDE = (  # such nodes of the thread that is given work, and small products while one thread has nothing to do
    (70, 0), (62, 0), (54, 0), (46, 0), (36, 0), (20, 0), (0, 0), (0, 10), (0, 80),
)  # fmt: skip
_ROUNDS = 12
_TRIPS, _TRIPS_OF_GAUGE = 24, 8
_PLACES = 2
_ROWS = 24  # of the matrices in a cell
_ROWS_OF_CELLS, _ALL_CELLS, _NAMED_CELLS = 8, (8, 32, 96), 32  # for steps of 180, 700 and 2000 nodes
_BETWEEN_PAIRS = 48  # ops of cells
_LONG_NAME = "a_layer_within_a_branch/or_another_layer_of_a_model"  # a scope, as long as those of models are


def run_probes(warm_up: int, count: int) -> dict[str, Any]:
    """Run every probe `count` times after `warm_up` others.

    Return its steps by name, in the layout of `steps.run_steps`. Those of small ops are made several times: what a node
    costs that is new in a step depends on where in memory its data happen to be, and on how large the step is. A trace
    has a label of each node, with its name and those of its inputs: steps with long names tell what these cost.
    """
    one: dict[str, Callable[[], None]] = {
        "small": _build_small_ops, f"small{LONG_NAMES}": partial(_build_small_ops, _LONG_NAME),
        "alive": partial(_build_switches, 0), "dead": partial(_build_switches, DEAD),
        "few dead": partial(_build_switches, FEW_DEAD), "wide": _build_fan_out,
    }  # fmt: skip
    one |= {f"after {side}": partial(_build_chain, side) for side in _SIDES_AFTER}
    two: dict[str, Callable[[], None]] = {f"beside, {size}": partial(_build_pairs, *size) for size in _BESIDE}
    two["shared"] = _build_two_loops
    found: dict[str, list[Any]] = {}
    for kind, inter_op, new in ((one, 1, NEW_ON_ONE), (two, 2, NEW_ON_TWO)):
        kind |= {f"{new}, {cells} cells": partial(_build_rows, cells) for cells in _ALL_CELLS}
        kind[f"{new}, {_NAMED_CELLS} cells{LONG_NAMES}"] = partial(_build_rows, _NAMED_CELLS, _LONG_NAME)
        for name, build in kind.items():
            places = range(_PLACES if name.startswith(("small", new)) else 1)
            found[name] = [step for _ in places for step in _trace_steps(build, inter_op, warm_up, count)]
    return found


def build_gauges() -> tuple[Runnable, Runnable]:
    """Return the graphs that show how fast the machine is just now, and what a second busy thread costs."""
    return _build_runnable(partial(_build_loop, _TRIPS_OF_GAUGE)), _build_runnable(_build_two_loops)


def _trace_steps(build: Callable[[], None], inter_op: int, warm_up: int, count: int) -> list[Any]:
    found, _ = steps.run_steps(_build_runnable(build), [(inter_op, 1)], 1, warm_up, count, build_gauges()[:1])
    return found[0]["steps"]


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


def _build_small_ops(scope: str = "") -> None:
    """Build small ops of many kinds, as cells of networks are: a cell in a loop."""
    ops = tf.raw_ops
    with tf.name_scope(scope):
        build_cell, state = _make_cells()
        trips, one = tf.constant(_TRIPS), tf.constant(1)
        tf.while_loop(
            lambda i, *_: ops.Less(x=i, y=trips),
            lambda i, *state: (ops.AddV2(x=i, y=one), *build_cell(*state)),
            (tf.constant(0), *state),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape(None), tf.TensorShape(None)),
        )


def _build_rows(cells: int, scope: str = "") -> None:
    """Build rows of cells, whose ops run one after another, with pairs of expensive ops between some of them.

    Ops of all rows take turns at random: those of a program lie in memory in another order than they run in, too. Two
    threads share a pair, and who ends it goes on alone, so that they take turns in running the cells. What an op of a
    cell is called is its type, within a scope, so that a step's first op of a type can be told.
    """
    get_operations = tf.compat.v1.get_default_graph().get_operations
    with tf.name_scope(scope):
        (build_cell, first), value = _make_cells(), _make_matrix(_SMALL)
        order, rows = get_operations(), []
        for _ in range(_ROWS_OF_CELLS):
            state, before = first, len(get_operations())
            for _ in range(cells // _ROWS_OF_CELLS):
                state = build_cell(*state)
            rows.append(iter(get_operations()[before:]))
    turns = [row for row in rows for _ in range((len(get_operations()) - len(order)) // _ROWS_OF_CELLS)]
    random.Random(0).shuffle(turns)
    last: list[Any] = []
    for i, op in enumerate([*order, *map(next, turns)]):
        if i % _BETWEEN_PAIRS == _BETWEEN_PAIRS - 1:
            with tf.control_dependencies(last):
                last = [tf.matmul(value, value, name=f"{PAIR}_{i}_{k}").op for k in range(2)]
        for before in last:
            op._add_control_input(before)
        last = [op]


def _make_cells() -> tuple[Callable[[Any, Any], tuple[Any, Any]], tuple[Any, Any]]:
    """Return what builds a cell after another one, and what the first one takes."""
    ops = tf.raw_ops
    rows, flat = tf.constant([_ROWS, _SMALL]), tf.constant([-1])
    weights, row, one = _make_matrix(_SMALL), tf.zeros([_SMALL]), tf.constant(1.0)
    second, across = tf.constant(1), tf.constant([0])

    def build_cell(x: Any, mean: Any) -> tuple[Any, Any]:
        left, right = ops.Split(axis=second, value=ops.Relu(features=ops.AddV2(
            x=ops.MatMul(a=x, b=weights), y=row)), num_split=2)  # fmt: skip
        bell, root = ops.Exp(x=ops.Neg(x=ops.Square(x=left))), ops.Sqrt(x=ops.Maximum(x=left, y=right))
        both = ops.ConcatV2(values=[bell, root], axis=second)
        centred = ops.Sub(x=both, y=ops.Mean(input=both, axis=second, keep_dims=True))
        line = ops.Reshape(tensor=centred, shape=flat)
        scale = ops.Rsqrt(x=ops.AddV2(x=one, y=ops.Sum(input=ops.Square(x=line), axis=across)))
        return ops.Minimum(x=ops.Mul(x=centred, y=scale), y=row), ops.Mul(x=mean, y=ops.Mean(input=right, axis=across))

    return build_cell, (ops.Fill(dims=rows, value=one), tf.zeros([_SMALL // 2]))


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
    """Build conditionals with so many dead nodes on the branches that are not taken, as branches are lowered.

    Constants there wait for the branch, by control edges; other ops take them. A Merge runs after its control inputs,
    dead ones too: else most dead nodes would run after the last that is traced.
    """
    taken, value = tf.constant(True), tf.constant(1.0)
    for round_ in range(BRANCHES):
        no, yes = tf.raw_ops.Switch(data=value, pred=taken, name=f"switch{round_}")
        last = pivot = tf.identity(no, name="pivot")
        for _ in range(dead // 2):
            with tf.control_dependencies([pivot.op]):
                other = tf.constant(2.0, name="dead")
            last = tf.raw_ops.AddV2(x=last, y=other, name="dead")
        with tf.control_dependencies([last.op]):
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


def _build_pairs(links: int, wait: int) -> None:
    """Build rounds of two chains for two threads, then some small products for one of them while the other is idle.

    What ends a round goes on with a chain of nodes that do nothing, and dispatches a small product, with `links` such
    nodes behind it. So who gives work to the idle thread is busy with bookkeeping, for longer than waking takes.
    """
    small, large = _make_matrix(_TINY), _make_matrix(_SMALL)
    before = tf.matmul(large, large, name="join_first")
    for round_ in range(_ROUNDS):
        with tf.control_dependencies([before]):
            pair = [tf.identity(small, name=f"one{round_}"), tf.matmul(large, large, name=f"other{round_}")]
        for i, (name, count) in enumerate((("one", _LINKS), ("other", links))):
            for link in range(count):
                pair[i] = tf.identity(pair[i], name=f"{name}{round_}_{link}")
        for i in range(wait):
            with tf.control_dependencies(pair):
                pair = [tf.matmul(large, large, name=f"wait{round_}_{i}")]
        with tf.control_dependencies(pair):
            before = tf.identity(small, name=f"join{round_}")

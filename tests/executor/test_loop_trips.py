"""How often loops run: as often as TensorFlow itself says, for the ways in which people write loops."""

from __future__ import annotations

from pathlib import Path

import pytest

import simplace
from simplace.analysis.schedule import schedule_placement
from simplace.costs.outcomes import How
from tests.executor.worlds import simulate_step

# Each function counts the rounds of its loop, and TensorFlow runs it; then come what is said of each of its loops.
COUNTED: dict[str, tuple[int, str, list[tuple[int, How]]]] = {
    "range_of_rows": (12, "for i in tf.range(tf.shape(x)[0]): n += 1", [(12, "read")]),
    "range_of_rest": (7, "for i in tf.range(5, tf.shape(x)[-2]): n += 1", [(7, "read")]),
    "range_of_half": (6, "for i in tf.range(tf.shape(x)[0] // 2): n += 1", [(6, "read")]),
    "range_of_size": (18, "for i in tf.range(tf.size(x) // 4): n += 1", [(18, "read")]),
    "range_by_three": (4, "for i in tf.range(0, 11, 3): n += 1", [(4, "read")]),
    "range_down": (12, "for i in tf.range(11, -1, -1): n += 1", [(12, "read")]),
    "rows": (12, "for row in x: n += 1", [(12, "read")]),
    "while_less": (9, "while n < 9: n += 1", [(9, "read")]),
    "while_not_zero": (8, "i = tf.constant(8)\n    while i != 0: i -= 1; n += 1", [(8, "read")]),
    "while_halved": (6, "i = tf.constant(64)\n    while i > 1: i //= 2; n += 1", [(6, "read")]),
    "unpacked": (6, "a, b = tf.unstack(tf.shape(x))\n    while n < b: n += 1", [(6, "read")]),
    "two": (13, "while n < 4: n += 1\n    m = n + 1\n    while n < m * 2 + 3: n += 1", [(4, "read"), (9, "read")]),
    "either": (10, "while (n < 10 and tf.reduce_sum(x) > 0.0): n += 1", [(10, "bounded")]),
    "left_early": (
        20,
        "for i in tf.range(20):\n        if tf.reduce_sum(x) < 0.0: break\n        n += 1",
        [(20, "bounded")],
    ),
    "grown": (
        5,
        "a = tf.TensorArray(tf.float32, 0, dynamic_size=True)\n    for i in tf.range(5): a = a.write(i, x)\n"
        "    while n < a.size(): n += 1",
        [(5, "read"), (5, "read")],
    ),
    "largest": (
        6,
        "n = tf.while_loop(lambda n: n < 8, lambda n: [n + 1], [n], maximum_iterations=tf.reduce_max(6))[0]",
        [(6, "read")],
    ),
    "data": (1, "while tf.reduce_sum(x) * tf.cast(n + 1, tf.float32) < 100.0: n += 1", [(10, "assumed")]),
}
FUNCTION = """
@tf.function
def {name}(x):
    n = tf.constant(0)
    {body}
    return n

assert {name}(tf.ones([12, 6])) == {rounds}
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_a_loop_runs_as_often_as_its_condition_says(tmp_path: Path) -> None:
    texts = [FUNCTION.format(name=name, body=body, rounds=rounds) for name, (rounds, body, _) in COUNTED.items()]
    script = tmp_path / "model.py"
    script.write_text("import tensorflow as tf\n" + "".join(texts))
    result = simplace.place(str(script), "cpu:1")
    assert result.failure is None
    found = {one.name: schedule_placement(one.placement, costs="modelled").flow.loops for one in result}
    assert {name: [(loop.trips, loop.how) for loop in loops] for name, loops in found.items()} == {
        name: said for name, (_, _, said) in COUNTED.items()
    }


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    ("function", "rounds"), [("lambda x: tf.map_fn(tf.sin, x)", 12), ("lambda x: tf.scan(tf.add, x)", 11)]
)
def test_functions_of_tensorflow_that_loop(tmp_path: Path, function: str, rounds: int) -> None:
    program = f"import tensorflow as tf\nstep = tf.function({function})\nstep(tf.ones([12, 6]))\n"
    loops = simulate_step(tmp_path, program).flow.loops
    assert [(loop.trips, loop.how) for loop in loops] == [(rounds, "read")]


BRANCHES = """
import tensorflow as tf

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for i in tf.range(5):
            if i % 3 == 0:
                y = tf.tanh(y)
            if tf.shape(x)[0] > 8:
                y = tf.sin(y)
            if tf.reduce_sum(y) > 0.0:
                y = tf.exp(y)
    return tape.gradient(y, x)

step(tf.ones([12, 6]))
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_a_branch_is_taken_in_the_rounds_that_its_condition_says(tmp_path: Path) -> None:
    flow = simulate_step(tmp_path, BRANCHES).flow
    assert sorted((branch.how, branch.taken, branch.by_round) for branch in flow.branches) == [
        ("assumed", 1, ()),
        ("assumed", 1, ()),
        ("read", 0, (0, 1, 0, 0, 1)),  # the gradient, whose rounds are those of the loop from its end
        ("read", 0, (1, 0, 0, 1, 0)),
        ("read", 1, ()),
        ("read", 1, ()),
    ]
